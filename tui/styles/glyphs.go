package styles

// Glyphs are the signs that eg-top draws with, each one cell wide. Names and values of users are not among them.
type Glyphs struct {
	// Frames.
	Horizontal, Vertical, TopLeft, TopRight, BottomLeft, BottomRight rune
	// Trees: the last branch, a fork.
	LastBranch, Fork rune

	// States of nodes: alive, suspect, dead, left, not known.
	Alive, Suspect, Dead, Left, Unknown rune
	// Verdicts of checks: passed, look at it, failed.
	Good, Attention, Broken rune

	// Ramp goes from nothing to full in nine steps, for sparklines and keyspace bars.
	Ramp [9]rune
	// Eighths are the widths of a bar's last cell, one eighth to full.
	Eighths [8]rune
	// BarLeft and BarRight frame a bar, BarEmpty is its rest.
	BarLeft, BarRight, BarEmpty rune

	Boundary rune // between two ranges
	SplitAt  rune // a split happened here
	MergeAt  rune // a merge happened here
	Arrow    rune // what became what
	Ascend   rune // the sort mark, smallest first
	Descend  rune // the sort mark, greatest first
	Up, Down rune // trends; Flat is neither
	Flat     rune
	Pointer  rune // this one
	Ellipsis rune // something was left out here
	Quiet    rune // a moment without an event
	Paused   rune
	Crumb    rune // between the parts of a path
	Ring     rune // the line of a ring
	Marked   rune // a marked row
}

var unicodeGlyphs = Glyphs{
	Horizontal: '─', Vertical: '│', TopLeft: '┌', TopRight: '┐', BottomLeft: '└', BottomRight: '┘',
	LastBranch: '└', Fork: '┬',
	Alive: '●', Suspect: '◐', Dead: '✖', Left: '◌', Unknown: '?',
	Good: '✓', Attention: '!', Broken: '✗',
	Ramp:    [9]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'},
	Eighths: [8]rune{'▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'},
	BarLeft: '▕', BarRight: '▏', BarEmpty: '▁',
	Boundary: '│', SplitAt: '▲', MergeAt: '▼', Arrow: '⟶',
	Ascend: '▲', Descend: '▼', Up: '▲', Down: '▼', Flat: '─', Pointer: '◂',
	Ellipsis: '…', Quiet: '·', Paused: '‖', Crumb: '▸', Ring: '┄', Marked: '▪',
}

var asciiGlyphs = Glyphs{
	Horizontal: '-', Vertical: '|', TopLeft: '+', TopRight: '+', BottomLeft: '+', BottomRight: '+',
	LastBranch: '`', Fork: '+',
	Alive: '*', Suspect: '?', Dead: 'x', Left: '.', Unknown: '~',
	Good: '+', Attention: '!', Broken: 'x',
	Ramp:    [9]rune{' ', '.', ':', '-', '=', '+', '*', '#', '#'},
	Eighths: [8]rune{' ', ' ', '-', '-', '=', '=', '#', '#'},
	BarLeft: '[', BarRight: ']', BarEmpty: '.',
	Boundary: '|', SplitAt: '^', MergeAt: 'v', Arrow: '>',
	Ascend: '^', Descend: 'v', Up: '^', Down: 'v', Flat: '-', Pointer: '<',
	Ellipsis: '~', Quiet: '.', Paused: '=', Crumb: '>', Ring: '.', Marked: '*',
}

// ascii spells the signs of our own texts for terminals that have no more than ASCII. Where two glyphs share a sign
// of the full set they share it here too.
var ascii = map[rune]string{
	'─': "-", '│': "|", '┌': "+", '┐': "+", '└': "`", '┘': "+", '├': "+", '┬': "+", '╰': "`", '╯': "'", '┄': ".",
	'●': "*", '◐': "?", '✖': "x", '◌': ".", '○': "o", '✓': "+", '✗': "x", '▪': "*",
	'▁': ".", '▂': ":", '▃': "-", '▄': "=", '▅': "+", '▆': "*", '▇': "#", '█': "#", '▏': "|", '▕': "|",
	'▎': "-", '▍': "-", '▌': "=", '▋': "=", '▊': "#", '▉': "#",
	'▲': "^", '▼': "v", '◂': "<", '▸': ">", '⟶': "->", '→': "->", '←': "<-", '↑': "^", '↓': "v", '↔': "<>",
	'…': "~", '·': ".", '‖': "=", '×': "x", '≥': ">=", '≤': "<=", '—': "-", '–': "-", '⏎': "enter", '⇧': "shift-",
	'∆': "d", 'µ': "u", '±': "+-",
}

// ASCII spells a rune in ASCII; ok is false for what is no sign of ours.
func ASCII(r rune) (text string, ok bool) {
	text, ok = ascii[r]
	return text, ok
}
