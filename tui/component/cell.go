package component

import "github.com/eastguard/eastguard/tui/styles"

// cell is one place of the grid, packed so that rows are compared and copied as plain numbers:
//
//	bits 0-31   the rune when it is ASCII or one of our signs, else the index of a grapheme in the canvas's table
//	bits 32-47  the style
//	bit 48      wild: the low bits are an index; text from outside, which may join with a neighbour of its kind
//	bit 49      wide: the right neighbour is this cell's second half
//	bit 50      rest: the second half of a wide cell
//
// A zero rune is a blank.
type cell uint64

const (
	styleShift = 32

	wild cell = 1 << 48
	wide cell = 1 << 49
	rest cell = 1 << 50

	lowMask   cell = 1<<32 - 1
	styleMask cell = (1<<16 - 1) << styleShift
)

func glyph(r rune, s styles.Style) cell { return cell(uint32(r)) | cell(s)<<styleShift }

func (c cell) low() uint32 { return uint32(c & lowMask) }

func (c cell) style() styles.Style { return styles.Style(c >> styleShift) }

func (c cell) styled(s styles.Style) cell { return c&^styleMask | cell(s)<<styleShift }
