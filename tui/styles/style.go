package styles

// Style is how a cell looks: a role, and attributes. The zero Style is plain text.
type Style uint16

// The roles. A page names what a thing is, never its colour.
const (
	Plain  Style = iota // default foreground
	OK                  // green: as it should be
	Warn                // yellow: look at it
	Bad                 // red: broken
	Info                // cyan: news, neither good nor bad
	Accent              // blue: names that can be opened, the view that is on
	Dim                 // grey: frames, headings, what is stale
	Title               // titles of boxes, bold
	Head                // headings of columns, dim
	Key                 // a key in the footer, bold accent
	heat0               // first of HeatLevels roles
)

// HeatLevels is the number of steps of the heat ramp.
const HeatLevels = 8

const roles = int(heat0) + HeatLevels

// The attributes are bits above the role.
const (
	roleMask Style = 1<<8 - 1
	bold     Style = 1 << 8
	under    Style = 1 << 9
	reverse  Style = 1 << 10

	attributes = 8 // combinations of the three
)

// Heat is the role of a level of the heat ramp, 0 coldest; levels outside it are clamped.
func Heat(level int) Style { return heat0 + Style(min(max(level, 0), HeatLevels-1)) }

// Bold adds weight. It stays where there are no colours.
func (s Style) Bold() Style { return s | bold }

// Underline adds a line. It stays where there are no colours.
func (s Style) Underline() Style { return s | under }

// Reverse swaps foreground and background: what is selected, and what changed a moment ago.
func (s Style) Reverse() Style { return s | reverse }

// Faded is the style of stale data: dim, with its attributes.
func (s Style) Faded() Style { return s&^roleMask | Dim }

// Selected is the style of what is selected: reverse, with its attributes and without its role.
func (s Style) Selected() Style { return s&^roleMask | reverse }

// role is the style without its attributes.
func (s Style) role() Style {
	if r := s & roleMask; int(r) < roles {
		return r
	}
	return Plain
}

func (s Style) index() int { return int(s.role())*attributes + int(s>>8&(attributes-1)) }

// Level is the step of the heat ramp for a value between 0 and most; ok is false when there is nothing to show.
func Level(value, most float64) (level int, ok bool) { return Step(value, most, HeatLevels) }

// Step is the same for a ramp of so many steps.
func Step(value, most float64, steps int) (step int, ok bool) {
	if !(value > 0) || !(most > 0) {
		return 0, false
	}
	share := min(value/most, 1) // NaN when both are endless
	if share != share {
		share = 1
	}
	return min(int(share*float64(steps)), steps-1), true
}
