package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/styles"
)

// verdict is the health in a word.
func (d *drawing) verdict() (string, styles.Style) {
	if d.v.Health.At.IsZero() {
		return "not checked yet", styles.Dim
	}
	warn, fail := 0, 0
	for _, c := range d.v.Health.Checks {
		switch c.Result {
		case sdk.HealthWarn:
			warn++
		case sdk.HealthFail:
			fail++
		case sdk.HealthPass:
		}
	}
	switch {
	case fail > 0:
		return fmt.Sprintf("FAIL %d", fail), styles.Bad.Bold()
	case warn > 0:
		return fmt.Sprintf("WARN %d", warn), styles.Warn.Bold()
	}
	return "PASS", styles.OK
}

// health is the checks with their verdicts; what is wrong is seen first where there is not room for all.
func (d *drawing) health(r component.Rect) {
	verdict, style := d.verdict()
	h := &d.v.Health
	inside := d.plainBox(r, "Health", verdict, style)
	if h.At.IsZero() {
		d.empty(inside, "no broker has given its verdict yet", "it is asked for every few seconds")
		return
	}
	checks := slices.Clone(h.Checks)
	if hidden := len(checks) - inside.H; hidden > 0 && inside.H > 0 {
		slices.SortStableFunc(checks, func(a, b sdk.HealthCheck) int { return cmp.Compare(b.Result, a.Result) })
		d.checks(inside, append(checks[:inside.H-1], d.unseen(checks[inside.H-1:])))
	} else {
		d.checks(inside, checks)
	}
	if old := d.st.Frame.Now.Sub(h.At); old > 30*time.Second {
		d.c.Fade(inside)
		d.c.Pen(inside.Line(inside.H-1)).AtRight("as of "+component.Age(old)+" ago", styles.Warn)
	}
}

// unseen is a line in place of the checks for which there is no room.
func (d *drawing) unseen(checks []sdk.HealthCheck) sdk.HealthCheck {
	worst := checks[0].Result // they are sorted
	text := fmt.Sprintf("%d more", len(checks))
	if worst == sdk.HealthPass {
		text = plural(len(checks), "more check") + " passed"
	}
	return sdk.HealthCheck{Name: text, Detail: text, Result: worst}
}

// checks draws checks, each in a line; a long one takes those that are to spare.
func (d *drawing) checks(inside component.Rect, checks []sdk.HealthCheck) {
	g := d.c.Glyphs()
	signs := map[sdk.HealthResult]rune{sdk.HealthPass: g.Good, sdk.HealthWarn: g.Attention, sdk.HealthFail: g.Broken}
	name := d.nameOfChecks(inside.W)
	spare, y := inside.H-len(checks), 0
	for _, c := range checks {
		pen := d.c.Pen(inside.Line(y)).Sign(signs[c.Result], verdictStyle(c.Result)).Skip(1)
		text := c.Detail
		switch {
		case name > 0 && c.Name != c.Detail:
			pen.Field(name-1, c.Name, styles.Plain).Skip(1)
		case c.Result == sdk.HealthPass || text == "":
			text = c.Name // it says what is so
		}
		lines := []string{text}
		if room := pen.Rest(); room.W > 12 {
			if lines = d.c.Wrap(text, room.W); len(lines) > spare+1 {
				lines = []string{text}
			}
		}
		for i, text := range lines {
			line := inside.Line(y + i)
			d.c.Pen(line).To(pen.Rest().X-line.X).Text(text, styles.Plain)
		}
		spare, y = spare-len(lines)+1, y+len(lines)
	}
}

// nameOfChecks is the width of a column for the names of the checks; 0 where there is not room for one beside the details.
func (d *drawing) nameOfChecks(w int) int {
	name := 12
	for i := range d.v.Health.Checks {
		name = max(name, d.c.Width(d.v.Health.Checks[i].Name)+2)
	}
	if name > (w+4)/2 {
		return 0
	}
	return name
}
