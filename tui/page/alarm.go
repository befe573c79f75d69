package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// alarmOf is the worst thing that is going on, in one line; nothing when all is well.
func alarmOf(v *store.View, st *State) Line {
	for _, look := range []func(*store.View, *State) Line{nodesInTrouble, nodesUnheard, shardsInTrouble, dataInTrouble, viewsDiffer, checksFailed} {
		if l := look(v, st); l.Text != "" {
			return l
		}
	}
	return Line{}
}

func nodesInTrouble(v *store.View, st *State) Line {
	var worst *store.Node
	others := 0
	for _, n := range v.Nodes.Rows() {
		if n.State != "suspect" && n.State != "dead" {
			continue
		}
		switch {
		case worst == nil:
			worst = n
		case n.Since.After(worst.Since):
			worst, others = n, others+1
		default:
			others++
		}
	}
	if worst == nil {
		return Line{}
	}
	style := styles.Warn
	if worst.State == "dead" {
		style = styles.Bad
	}
	text := "! " + string(worst.ID) + " " + worst.State
	if !worst.Since.IsZero() {
		text += " " + age(worst.Since, st.Frame.Now)
	}
	if others > 0 {
		text += fmt.Sprintf(" and %d more", others)
	}
	if done := becauseOf(v, worst); len(done) > 0 {
		text += ": " + strings.Join(done, ", ")
	}
	return Line{text, style}
}

// becauseOf is what has been done about a node since it is missed, and how long producers waited for it at most.
func becauseOf(v *store.View, n *store.Node) (done []string) {
	if n.Since.IsZero() {
		return nil
	}
	from := missedFrom(n)
	seals, gap := sealsSince(v, from)
	if seals > 0 {
		done = append(done, plural(seals, "segment")+" sealed")
	}
	moved := 0
	for _, s := range v.Shards.Rows() {
		if s.LastFrom == n.ID && s.Leader != "" && s.Leader != n.ID && s.Since.After(from) {
			moved++
		}
	}
	if moved > 0 {
		done = append(done, plural(moved, "shard")+" led by others")
	}
	if gap > 0 {
		done = append(done, "gap up to "+span(gap))
	}
	return done
}

// missedFrom is when it began that a node is missed: it is left before anybody calls it suspect, and long before most call
// it dead.
func missedFrom(n *store.Node) time.Time {
	const atMost, atLeast = 10 * store.StaleAfter, 2 * store.StaleAfter
	from, heard := n.Since.Add(-atLeast), n.Heard.Add(-time.Second) // clocks differ
	if n.Stream == store.StreamLive || n.Heard.IsZero() || heard.After(from) {
		return from
	}
	if least := n.Since.Add(-atMost); heard.Before(least) {
		return least
	}
	return heard
}

// sealsSince counts the seals because nodes were lost, at their failure or after it.
func sealsSince(v *store.View, from time.Time) (count int, gap time.Duration) {
	all := v.Seals.All()
	for i := len(all) - 1; i >= 0 && all[i].Time.After(from); i-- {
		if letter := all[i].Letter(); letter == 'F' || letter == 'R' && all[i].New != 0 {
			count++
			gap = max(gap, wait(all[i]))
		}
	}
	return count, gap
}

// nodesUnheard tells of nodes that live, as the others say, and of which nothing comes here.
func nodesUnheard(v *store.View, st *State) Line {
	var first *store.Node
	others := 0
	for _, n := range v.Nodes.Rows() {
		if n.State != "alive" && n.State != "unknown" || n.Stream != store.StreamStale && n.Stream != store.StreamLost {
			continue
		}
		if first == nil {
			first = n
		} else {
			others++
		}
	}
	if first == nil {
		return Line{}
	}
	text := "! " + string(first.ID) + " is not heard"
	switch {
	case others > 0:
		text = fmt.Sprintf("! %s and %d more are not heard", first.ID, others)
	case !first.Heard.IsZero():
		text += " for " + age(first.Heard, st.Frame.Now)
	}
	if first.Error != "" {
		text += ": " + first.Error
	}
	return Line{text, styles.Warn}
}

func shardsInTrouble(v *store.View, st *State) Line {
	var first *store.Shard
	count := 0
	for _, s := range v.Shards.Rows() {
		if s.Leader == "" {
			if first == nil {
				first = s
			}
			count++
		}
	}
	switch {
	case count == 0:
		return Line{}
	case count == 1 && !first.Since.IsZero():
		return Line{fmt.Sprintf("! shard %s has no leader for %s", first.ID, age(first.Since, st.Frame.Now)), styles.Bad}
	case count == 1:
		return Line{fmt.Sprintf("! shard %s has no leader", first.ID), styles.Bad}
	}
	return Line{fmt.Sprintf("! %d shards have no leader, the first is %s", count, first.ID), styles.Bad}
}

func dataInTrouble(v *store.View, _ *State) Line {
	t := &v.Cluster.Totals
	if t.UnderReplicated == 0 {
		return Line{}
	}
	text := "! " + plural(t.UnderReplicated, "segment") + " below the replication factor"
	if r := v.Repairs(); len(r) > 0 {
		text += fmt.Sprintf(", %d being repaired", len(r))
	}
	return Line{text, styles.Warn}
}

func viewsDiffer(v *store.View, _ *State) Line {
	c := &v.Cluster
	if c.AgreeOf == 0 || c.Agree == c.AgreeOf {
		return Line{}
	}
	return Line{fmt.Sprintf("! %d of %d nodes have another ring", c.AgreeOf-c.Agree, c.AgreeOf), styles.Warn}
}

func checksFailed(v *store.View, _ *State) Line {
	for _, want := range []sdk.HealthResult{sdk.HealthFail, sdk.HealthWarn} {
		for _, check := range v.Health.Checks {
			if check.Result == want {
				return Line{"! " + cmp.Or(check.Detail, check.Name), verdictStyle(want)} // the name says what should be
			}
		}
	}
	return Line{}
}

func verdictStyle(r sdk.HealthResult) styles.Style {
	switch r {
	case sdk.HealthPass:
		return styles.OK
	case sdk.HealthWarn:
		return styles.Warn
	case sdk.HealthFail:
	}
	return styles.Bad
}

// nodeState is the sign, the letter and the look of what the others believe of a node. One that is not heard is
// marked as old.
func nodeState(c *component.Canvas, n *store.Node) (sign rune, letter string, style styles.Style) {
	sign, letter, style = stateSign(c, n.State)
	if n.Stream == store.StreamStale || n.Stream == store.StreamLost {
		if n.State == "alive" || n.State == "unknown" {
			return c.Glyphs().Unknown, letter, styles.Warn
		}
	}
	return sign, letter, style
}

func stateSign(c *component.Canvas, state string) (sign rune, letter string, style styles.Style) {
	g := c.Glyphs()
	switch state {
	case "alive":
		return g.Alive, "A", styles.OK
	case "suspect":
		return g.Suspect, "S", styles.Warn
	case "dead":
		return g.Dead, "D", styles.Bad
	case "left":
		return g.Left, "L", styles.Dim
	}
	return g.Unknown, "?", styles.Dim
}
