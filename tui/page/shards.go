package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// shards is page 3: who leads the metadata.
type shards struct{}

// ID is 3.
func (shards) ID() ID { return Shards }

var shardTable = &table[*store.Shard]{
	name: "shards",
	sort: "STATE",
	id:   func(s *store.Shard) string { return s.ID.String() },
	text: func(s *store.Shard) string {
		return s.ID.String() + " " + s.State + " " + string(s.Leader) + " " + nodeNames(s.Voters, "")
	},
	source: func(v *store.View, _ *State) source[*store.Shard] {
		return source[*store.Shard]{
			version: v.Shards.Version, n: v.Shards.Len(), at: v.Shards.At,
			find: func(id string) int {
				shard, err := sdk.ParseShardID(id)
				if err != nil {
					return -1
				}
				return v.Shards.Index(shard)
			},
		}
	},
	faded: func(_ *drawing, s *store.Shard) bool { return s.Stale },
	cols: []col[*store.Shard]{
		{name: "SHARD", w: 6, less: func(a, b *store.Shard) int { return a.ID.Compare(b.ID) }, cell: func(_ *drawing, s *store.Shard) (string, styles.Style) { return s.ID.String(), styles.Accent }},
		{name: "STATE", w: 13, less: byShardState, paint: paintShardState},
		{name: "LEADER", w: 6, most: 8, less: func(a, b *store.Shard) int { return cmp.Compare(a.Leader, b.Leader) }, cell: func(_ *drawing, s *store.Shard) (string, styles.Style) { return plain(orNone(string(s.Leader))) }},
		{name: "TERM", w: 4, most: 6, right: true, value: func(s *store.Shard) float64 { return float64(s.Term) }, cell: number(func(s *store.Shard) int64 { return int64(s.Term) })},
		{name: "COMMIT", w: 8, most: 12, right: true, value: func(s *store.Shard) float64 { return float64(s.Commit) }, cell: index(func(s *store.Shard) uint64 { return s.Commit })},
		{name: "APPLIED", w: 8, most: 12, right: true, rank: 3, value: func(s *store.Shard) float64 { return float64(s.Applied) }, cell: index(func(s *store.Shard) uint64 { return s.Applied })},
		{name: "FOLLOWERS", w: 10, most: 30, rank: 1, cell: followers},
		{name: "TRAILS", w: 6, right: true, rough: true, rank: 2, value: func(s *store.Shard) float64 { return float64(s.Trails) }, cell: func(_ *drawing, s *store.Shard) (string, styles.Style) {
			switch {
			case s.Leader == "" || s.Commit == 0:
				return dim(none)
			case s.Trails > 0:
				return "+" + component.Count(s.Trails), styles.Warn
			}
			return dim("+0")
		}},
		{name: "TOPICS", w: 6, right: true, rank: 4, value: func(s *store.Shard) float64 { return float64(s.Topics) }, cell: number(func(s *store.Shard) int64 { return int64(s.Topics) })},
		{name: "TOLD BY", w: 8, rank: 6, cell: func(_ *drawing, s *store.Shard) (string, styles.Style) { return dim(orNone(string(s.Observer))) }},
		{name: "LEADERLESS", w: 10, right: true, rank: 6, value: func(s *store.Shard) float64 { return float64(s.LeaderlessMs) }, cell: func(_ *drawing, s *store.Shard) (string, styles.Style) {
			if s.LeaderlessMs == 0 {
				return dim(none)
			}
			return plain(stood(s.LeaderlessMs))
		}},
		{name: "AGE", w: 5, right: true, rank: 1, value: func(s *store.Shard) float64 { return float64(s.Since.UnixMilli()) }, cell: func(d *drawing, s *store.Shard) (string, styles.Style) {
			text := brief(s.Since, d.st.Frame.Now)
			if !s.Since.IsZero() && d.st.Frame.Now.Sub(s.Since) < time.Minute {
				return text, styles.Info.Bold()
			}
			return plain(text)
		}},
	},
}

func index[R any](of func(R) uint64) func(*drawing, R) (string, styles.Style) {
	return func(_ *drawing, r R) (string, styles.Style) {
		if v := of(r); v > 0 {
			return component.Count(v), styles.Plain
		}
		return dim(none)
	}
}

func byShardState(a, b *store.Shard) int {
	return cmp.Or(cmp.Compare(shardTrouble(b), shardTrouble(a)), a.ID.Compare(b.ID))
}

func shardTrouble(s *store.Shard) int {
	switch {
	case s.Leader == "":
		return 4
	case s.State == "recovering":
		return 3
	case s.State != "ok" && s.State != "":
		return 2
	case s.Trails > 0 || s.Want > len(s.Voters):
		return 1
	}
	return 0
}

func paintShardState(d *drawing, place component.Rect, s *store.Shard) {
	g := d.c.Glyphs()
	sign, word, style := g.Alive, "ok", styles.OK
	switch {
	case s.Leader == "":
		sign, word, style = g.Left, "no leader", styles.Bad
	case s.State == "recovering":
		sign, word, style = g.Suspect, "recovering", styles.Bad
	case s.State == "catching_up":
		sign, word, style = g.Suspect, "catching up", styles.Warn
	case s.Trails > 0:
		sign, word, style = g.Suspect, "behind", styles.Warn
	case s.Want > len(s.Voters):
		sign, word, style = g.Suspect, fmt.Sprintf("%d of %d", len(s.Voters), s.Want), styles.Warn
	}
	d.c.Pen(place).Sign(sign, style).Skip(1).Text(word, style)
}

func followers(_ *drawing, s *store.Shard) (string, styles.Style) {
	text := nodeNames(s.Voters, s.Leader)
	if len(s.NonVoters) > 0 {
		text += " (" + nodeNames(s.NonVoters, "") + ")"
	}
	return plain(orNone(text))
}

func nodeNames(ids []sdk.NodeID, but sdk.NodeID) string {
	var b strings.Builder
	for _, id := range ids {
		if id == but {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(id))
	}
	return b.String()
}

// Draw draws the leaders and the list.
func (shards) Draw(c *component.Canvas, body component.Rect, v *store.View, st *State) {
	st.focusable = 1
	d := &drawing{c: c, v: v, st: st}
	if !st.Zoom {
		var top component.Rect
		per := max((body.W-4)/max(d.leaderCell(), 1), 1)
		lines := (v.Nodes.Len() + per - 1) / per
		top, body = body.CutTop(min(max(lines, 1)+3, max(body.H/3, 5)))
		d.leaders(top, per)
	}
	inside := d.box(body, 0, "Shards", d.join(body, "Shards", shardTable.notes(d, 0, body.W)...))
	shardTable.draw(d, 0, body, inside, "no shard is known yet", "each node tells of the replicas that it has")
}

// leaderCell is the width of one node in the panel of the leaders.
func (d *drawing) leaderCell() int {
	if d.v.Nodes.Len() > 20 {
		return d.nodeWidth() + 14
	}
	return d.nodeWidth() + 22
}

// leaders shows how many shards each node leads.
func (d *drawing) leaders(r component.Rect, per int) {
	led := make(map[sdk.NodeID]int)
	leaderless, trails, trailing := 0, uint64(0), ""
	for _, s := range d.v.Shards.Rows() {
		if s.Leader == "" {
			leaderless++
			continue
		}
		led[s.Leader]++
		if s.Trails > trails {
			trails, trailing = s.Trails, s.ID.String()
		}
	}
	nodes := d.v.Nodes.Rows()
	most, least := 0, -1
	for _, n := range nodes {
		most = max(most, led[n.ID])
		if n.State == "alive" && (least < 0 || led[n.ID] < least) {
			least = led[n.ID]
		}
	}
	skew := ""
	if least > 0 {
		skew = fmt.Sprintf("skew %.2f", float64(most)/float64(least))
	}
	inside := d.plainBox(r, "Leaders per node", skew, styles.Dim)
	if len(nodes) == 0 {
		d.empty(inside, "no node is known yet")
		return
	}
	shown, facts := inside.CutBottom(1)
	cell, name := d.leaderCell(), d.nodeWidth()
	for i, n := range nodes {
		line := shown.Line(i / per)
		if line.Empty() {
			break
		}
		_, place := line.CutLeft(i % per * cell)
		place.W = min(place.W, cell-2)
		pen := d.c.Pen(place).Field(name, string(n.ID), styles.Accent).Skip(1)
		bar := pen.Rest()
		bar.W = min(max(bar.W-5, 0), cell-name-8)
		d.c.Bar(bar, float64(led[n.ID])/float64(max(most, 1)), styles.Accent)
		pen.Skip(bar.W).Number(4, component.Count(led[n.ID]), styles.Plain)
		if n.State == "suspect" || n.State == "dead" {
			pen.Skip(0).Sign(d.c.Glyphs().Down, styles.Warn)
		}
	}
	behind := fact{name: "furthest behind", value: "nobody"}
	if trails > 0 {
		behind.value, behind.style = component.Count(trails)+" (shard "+trailing+")", styles.Warn
	}
	d.facts(facts, 3, d.hurt("leaderless", leaderless), fact{name: "elections/min", value: component.Count(d.elections())}, behind)
}

// elections counts the leaders that were found in the last minute.
func (d *drawing) elections() (n int) {
	all := d.v.Events.All()
	for _, e := range slices.Backward(all) {
		if d.st.Frame.Now.Sub(e.At) > time.Minute {
			break
		}
		if e.Type == "LEADER_CHANGED" {
			n++
		}
	}
	return n
}

// Rows are the shards.
func (shards) Rows(v *store.View, st *State) Rows { return shardTable.ordered(v, st, 0) }

// Columns are those of the table.
func (shards) Columns(*State) []string { return shardTable.columns() }

// Panels is 1.
func (shards) Panels(int, int) int { return 1 }

// Head counts the shards.
func (shards) Head(v *store.View, _ *State) string { return plural(v.Shards.Len(), "shard") }

// Alarm is a shard without a leader before all else.
func (shards) Alarm(v *store.View, st *State) Line {
	if l := shardsInTrouble(v, st); l.Text != "" {
		return l
	}
	return alarmOf(v, st)
}

// About is the selected shard.
func (shards) About(v *store.View, st *State) Subject {
	s := selected(shardTable.ordered(v, st, 0), st.Panels[0].Selected)
	if s == nil {
		return Subject{}
	}
	id := s.ID.String()
	to, why := heir(v, s)
	return Subject{
		Kind: KindShard, Name: id, Open: Events, Describe: []string{"shard", "describe", id},
		Actions: []Action{
			{Key: 't', Title: "transfer to " + to + "…", Head: "Transfer shard " + id + " to " + to, Command: []string{"shard", "transfer", id, to}, Level: LevelYes, Why: why},
			{Key: 'b', Title: "balance all…", Head: "Balance the leaders of all shards", Command: []string{"shard", "balance"}, Level: LevelYes},
		},
	}
}

// heir is the voter that leads the fewest shards of those that could lead this one, or why there is none.
func heir(v *store.View, s *store.Shard) (to, why string) {
	if s.Leader == "" {
		return none, "the shard has no leader"
	}
	least := 0
	for _, id := range s.Voters {
		n := v.Nodes.Get(id)
		if id == s.Leader || n == nil || n.State != "alive" || n.Stream != store.StreamLive {
			continue
		}
		if to == "" || n.ShardLeaders < least {
			to, least = string(id), n.ShardLeaders
		}
	}
	if to == "" {
		return none, "none of its followers is heard"
	}
	return to, ""
}
