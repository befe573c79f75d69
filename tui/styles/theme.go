package styles

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Theme is a colour mode and a glyph set, ready to draw with. It never changes: another look is another Theme.
type Theme struct {
	Mode   Mode
	ASCII  bool
	Glyphs Glyphs

	id  uint32
	sgr [roles * attributes]string
}

// Reset is the SGR sequence of plain text.
const Reset = "\x1b[m"

// NewTheme builds a theme.
func NewTheme(mode Mode, ascii bool) *Theme {
	t := &Theme{Mode: mode, ASCII: ascii, Glyphs: unicodeGlyphs, id: uint32(mode) << 1}
	if ascii {
		t.Glyphs = asciiGlyphs
		t.id |= 1
	}
	for role := range Style(roles) {
		for bits := range Style(attributes) {
			s := role | bits<<8
			t.sgr[s.index()] = t.sequence(s)
		}
	}
	return t
}

// ID tells themes apart: part of the key of whatever caches what it drew.
func (t *Theme) ID() uint32 { return t.id }

// SGR is the sequence that makes the following text look like s, whatever it looked like before.
func (t *Theme) SGR(s Style) string { return t.sgr[s.index()] }

// sequence builds the SGR of one style. Each begins with a reset, so that it needs no knowledge of the style
// before it.
func (t *Theme) sequence(s Style) string {
	look := looks[s.role()]
	seq := ansi.Style{}.Reset()
	if look.bold || s&bold != 0 {
		seq = seq.Bold()
	}
	if s&under != 0 {
		seq = seq.Underline(true)
	}
	if s&reverse != 0 {
		seq = seq.Reverse(true)
	}
	if c := t.foreground(s.role()); c != nil {
		seq = seq.ForegroundColor(c)
	}
	if len(seq) == 1 {
		return Reset
	}
	return seq.String()
}

func (t *Theme) foreground(role Style) color.Color {
	level := int(role) - int(heat0)
	switch {
	case t.Mode == NoColor:
		return nil
	case level < 0:
		return looks[role].color
	case t.Mode == Color16:
		return heat16[level]
	}
	return t.Mode.Profile().Convert(heat[level])
}

// look is a role's colour of the 16, nil for the terminal's own, and its weight.
type look struct {
	color color.Color
	bold  bool
}

var looks = [roles]look{
	OK:     {color: ansi.Green},
	Warn:   {color: ansi.Yellow},
	Bad:    {color: ansi.Red},
	Info:   {color: ansi.Cyan},
	Accent: {color: ansi.Blue},
	Dim:    {color: ansi.BrightBlack},
	Title:  {bold: true},
	Head:   {color: ansi.BrightBlack},
	Key:    {color: ansi.Blue, bold: true},

	heat0 + HeatLevels - 1: {bold: true}, // the hottest stands out without colours too
}

// The heat ramp goes from a cold blue over green and yellow to red, at about the same lightness, so that it reads
// on dark and on light backgrounds.
var heat = [HeatLevels]color.Color{
	lipgloss.Color("#4a7fb5"), lipgloss.Color("#3f93a8"), lipgloss.Color("#43a383"), lipgloss.Color("#6fa84f"),
	lipgloss.Color("#a8a23a"), lipgloss.Color("#cf922c"), lipgloss.Color("#d9712e"), lipgloss.Color("#d64545"),
}

// heat16 is the ramp in the user's own palette.
var heat16 = [HeatLevels]color.Color{
	ansi.Blue, ansi.Blue, ansi.Cyan, ansi.Cyan, ansi.Green, ansi.Yellow, ansi.Yellow, ansi.Red,
}
