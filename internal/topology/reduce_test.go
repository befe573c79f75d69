package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

func seen(id base.NodeID, boot uint64) Event {
	return Event{Seen: &Seen{ID: id, Disk: base.DiskID{1}, Boot: boot, Address: string(id) + ":2921", Admitted: true}}
}

func moved(id base.NodeID, boot uint64, to Liveness) Event {
	return Event{Moved: &Moved{ID: id, Boot: boot, Liveness: to}}
}

func fold(events ...Event) View {
	var v View
	for _, e := range events {
		v = Reduce(v, e)
	}
	return v
}

func TestJudgedIsOfOneStart(t *testing.T) {
	judged := Event{Judged: &Judged{ID: "n1", Boot: 1, Slow: true, Restarts: 1, SettledMs: 500}}
	n, _ := fold(seen("n1", 1), judged, Event{Seen: &Seen{ID: "n1", Boot: 1, Admitted: true, Rack: "b"}}).Node("n1")
	require.Empty(t, n.Unfit(), "it may be needed")
	require.Equal(t, "slow", n.Doubtful(0))
	n, _ = fold(seen("n1", 2), judged).Node("n1")
	require.Empty(t, n.Doubtful(0), "said of another start")
	n, _ = fold(seen("n1", 1), judged, Event{Judged: &Judged{ID: "n1", Boot: 1, Restarts: 2, SettledMs: 500}}).Node("n1")
	require.Equal(t, "started again a moment ago", n.Doubtful(499))
	require.Empty(t, n.Doubtful(500))
}

func TestReduce(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		want   Node
		unfit  string
	}{
		"seen is alive":                  {[]Event{seen("n1", 1)}, Node{Boot: 1, Liveness: Alive}, ""},
		"suspected and cleared":          {[]Event{seen("n1", 1), moved("n1", 1, Suspect), moved("n1", 1, Alive)}, Node{Boot: 1, Liveness: Alive}, ""},
		"dead is final for a start":      {[]Event{seen("n1", 1), moved("n1", 1, Dead), moved("n1", 1, Alive)}, Node{Boot: 1, Liveness: Dead}, "dead"},
		"but the next start lives":       {[]Event{seen("n1", 1), moved("n1", 1, Dead), seen("n1", 2)}, Node{Boot: 2, Liveness: Alive}, ""},
		"but a rename lives":             {[]Event{seen("n1", 1), moved("n1", 1, Dead), {Seen: &Seen{ID: "n1", Boot: 1, Rename: 1, Admitted: true}}}, Node{Boot: 1, Liveness: Alive}, ""},
		"a word on an older name":        {[]Event{{Seen: &Seen{ID: "n1", Boot: 1, Rename: 1, Admitted: true}}, moved("n1", 1, Dead), seen("n1", 1)}, Node{Boot: 1, Liveness: Alive}, ""},
		"dead, described again":          {[]Event{seen("n1", 1), moved("n1", 1, Dead), seen("n1", 1)}, Node{Boot: 1, Liveness: Dead}, "dead"},
		"a word on an older start":       {[]Event{seen("n1", 2), moved("n1", 1, Dead)}, Node{Boot: 2, Liveness: Alive}, ""},
		"an older description":           {[]Event{seen("n1", 2), seen("n1", 1)}, Node{Boot: 2, Liveness: Alive}, ""},
		"left after dead":                {[]Event{seen("n1", 1), moved("n1", 1, Dead), moved("n1", 1, Left)}, Node{Boot: 1, Liveness: Left}, "left"},
		"draining survives a restart":    {[]Event{seen("n1", 1), {Standing: &StandingChange{ID: "n1", Standing: Draining}}, seen("n1", 2)}, Node{Boot: 2, Liveness: Alive, Standing: Draining}, "draining"},
		"crowded is not unfit":           {[]Event{seen("n1", 1), {Usage: &Usage{ID: "n1", Boot: 1, DiskFree: 5, DiskTotal: 100}}}, Node{Boot: 1, Liveness: Alive}, ""},
		"usage of an older start":        {[]Event{seen("n1", 2), {Usage: &Usage{ID: "n1", Boot: 1, Full: true}}}, Node{Boot: 2, Liveness: Alive}, ""},
		"usage stands when seen again":   {[]Event{seen("n1", 1), {Usage: &Usage{ID: "n1", Boot: 1, Leaving: true}}, {Seen: &Seen{ID: "n1", Boot: 1, Admitted: true, Rack: "b"}}}, Node{Boot: 1, Liveness: Alive}, "leaving"},
		"leaving":                        {[]Event{seen("n1", 1), {Seen: &Seen{ID: "n1", Boot: 1, Admitted: true, Leaving: true}}}, Node{Boot: 1, Liveness: Alive}, "leaving"},
		"leaving, by its report":         {[]Event{seen("n1", 1), {Usage: &Usage{ID: "n1", Boot: 1, Leaving: true}}, seen("n1", 1), {Usage: &Usage{ID: "n1", Boot: 1}}}, Node{Boot: 1, Liveness: Alive}, "leaving"},
		"left, and started again":        {[]Event{{Seen: &Seen{ID: "n1", Boot: 1, Admitted: true, Leaving: true}}, seen("n1", 2)}, Node{Boot: 2, Liveness: Alive}, ""},
		"not admitted":                   {[]Event{{Seen: &Seen{ID: "n1", Boot: 1}}}, Node{Boot: 1, Liveness: Alive}, "not admitted"},
		"events of nobody change nobody": {[]Event{seen("n1", 1), moved("n9", 1, Dead), {}}, Node{Boot: 1, Liveness: Alive}, ""},
	} {
		n, ok := fold(c.events...).Node("n1")
		require.True(t, ok, name)
		require.Equal(t, c.want.Boot, n.Boot, name)
		require.Equal(t, c.want.Liveness, n.Liveness, name)
		require.Equal(t, c.want.Standing, n.Standing, name)
		require.Equal(t, c.unfit, n.Unfit(), name)
	}
}

func TestCrowded(t *testing.T) {
	for want, n := range map[string]Node{
		"":               {DiskFree: 11, DiskTotal: 100},
		"disk over 90 %": {DiskFree: 9, DiskTotal: 100},
		"disk full":      {DiskFree: 9, DiskTotal: 100, Full: true},
	} {
		require.Equal(t, want, n.Crowded())
	}
}

func TestAViewIsNotChangedByTheNext(t *testing.T) {
	before := fold(seen("n1", 1), seen("n2", 1))
	after := Reduce(before, moved("n1", 1, Dead))
	n, _ := before.Node("n1")
	require.Equal(t, Alive, n.Liveness)
	require.Equal(t, before.Version+1, after.Version)
	require.Equal(t, after, Reduce(after, moved("n1", 1, Dead)), "what is known already changes nothing")
}

func TestReduceIsAFunctionAndKeepsOrder(t *testing.T) {
	nodes := rapid.SampledFrom([]base.NodeID{"n1", "n2", "n3"})
	event := rapid.Custom(func(t *rapid.T) Event {
		id, boot := nodes.Draw(t, "node"), rapid.Uint64Range(1, 3).Draw(t, "boot")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return seen(id, boot)
		case 1:
			return moved(id, boot, rapid.SampledFrom([]Liveness{Alive, Suspect, Dead, Left}).Draw(t, "to"))
		case 2:
			return Event{Standing: &StandingChange{ID: id, Standing: rapid.SampledFrom([]Standing{Normal, Draining, Out}).Draw(t, "standing")}}
		}
		return Event{Usage: &Usage{ID: id, Boot: boot, Leading: rapid.IntRange(0, 5).Draw(t, "leading")}}
	})
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(event).Draw(t, "events")
		v := fold(events...)
		require.Equal(t, v, fold(events...))
		boots := map[base.NodeID]uint64{}
		for _, e := range events {
			if e.Seen != nil {
				boots[e.Seen.ID] = max(boots[e.Seen.ID], e.Seen.Boot)
			}
		}
		require.Len(t, v.Nodes, len(boots))
		for i, n := range v.Nodes {
			require.Equal(t, boots[n.ID], n.Boot)
			require.True(t, i == 0 || v.Nodes[i-1].ID < n.ID)
		}
	})
}

// What the root shard lists is there before anybody was met, is as good as dead when nobody ever is, and adds nothing
// but the standing to what a node says of itself.
func TestListed(t *testing.T) {
	listed := Event{Listed: &Listed{ID: "n2", Boot: 4, Address: "old:1", Standing: Draining, Labels: map[string]string{"disk": "ssd"}}}
	v := Reduce(View{}, listed)
	n, _ := v.Node("n2")
	require.Equal(t, Unknown, n.Liveness)
	require.True(t, n.Admitted)
	require.NotEmpty(t, n.Unfit())

	v = Reduce(v, Event{Seen: &Seen{ID: "n2", Boot: 5, Address: "new:1"}})
	n, _ = v.Node("n2")
	require.Equal(t, Node{ID: "n2", Boot: 5, Address: "new:1", Liveness: Alive, Standing: Draining}, n)
	require.Equal(t, v, Reduce(v, listed))

	listed.Listed.ID, listed.Listed.Gone = "n3", true
	n, _ = Reduce(v, listed).Node("n3")
	require.Equal(t, Dead, n.Liveness)
}

// Whether the table or the failure detector speaks first does not matter: not for a node of which both say the same, not
// for one that is listed as gone, nor for one whose next start only the table knows.
func TestListedAndSeenInAnyOrder(t *testing.T) {
	seen := Event{Seen: &Seen{ID: "n2", Boot: 4, Address: "n2:1", Admitted: true}}
	for _, listed := range []Listed{
		{ID: "n2", Boot: 4, Address: "n2:1", Standing: Out},
		{ID: "n2", Boot: 4, Address: "n2:1", Standing: Draining, Gone: true},
		{ID: "n2", Boot: 5, Address: "n2:1", Disk: base.DiskID{2}},
		{ID: "n2", Boot: 3, Address: "old:1"},
	} {
		want := fold(seen, Event{Listed: &listed})
		n, _ := want.Node("n2")
		require.Equal(t, Node{ID: "n2", Boot: 4, Address: "n2:1", Admitted: true, Liveness: Alive, Standing: listed.Standing}, n)
		require.True(t, want.Equal(fold(Event{Listed: &listed}, seen)))
	}
}

func TestBuildIsManyReduces(t *testing.T) {
	var events []Event
	for i, id := range []base.NodeID{"n3", "n1", "n2", "n1"} {
		events = append(events,
			Event{Listed: &Listed{ID: id, Boot: 1}},
			Event{Seen: &Seen{ID: id, Boot: uint64(i), Labels: map[string]string{"i": "x"}}},
			Event{Standing: &StandingChange{ID: id, Standing: Draining}},
			Event{Usage: &Usage{ID: id, Boot: uint64(i), DiskFree: int64(i)}})
	}
	var one View
	for _, e := range events {
		one = Reduce(one, e)
	}
	all := Build(one.Version, events)
	require.Equal(t, one, all)
	require.True(t, all.Equal(one))
	changed := Reduce(all, Event{Moved: &Moved{ID: "n2", Boot: 2, Liveness: Dead}})
	require.False(t, all.Equal(changed), "and what was built does not change any more")
	require.Equal(t, one, all)
}
