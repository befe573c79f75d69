package seal

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// n3 is a number for each node.
type n3 = [replicas]uint8

// named is a world with a name.
type named struct {
	name string
	bounds
}

// worlds are searched to their end. Each goes in one direction; together they have every fault that can meet a segment.
var worlds = []named{
	{"zombie leader", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, alive: true}},
	{"three batches", bounds{batches: 3, segments: 2, freezes: 1, fences: 1}},
	{"three segments", bounds{batches: 2, segments: 3, freezes: 2}},
	{"two coordinators", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, stale: true}},
	{"all are told", bounds{batches: 1, segments: 2, freezes: 1, fences: 1, tellAll: true}},
	{"readers", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, readers: true}},
	{"late opens", bounds{batches: 1, segments: 2, freezes: 1, fences: 1, late: true, losses: true}},
	{"leaders that retire", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, losses: true, retire: true}},
	{"acks from memory", bounds{batches: 1, segments: 2, fences: 1, memory: true, crashes: n3{0, 1, 1}}},
	{"leader killed", bounds{batches: 2, segments: 2, fences: 1, crashes: n3{1, 0, 0}}},
	{"leader killed twice", bounds{batches: 1, segments: 2, fences: 1, alive: true, crashes: n3{2, 0, 0}}},
	{"follower killed", bounds{batches: 1, segments: 2, freezes: 1, fences: 1, crashes: n3{0, 1, 0}}},
	{"the view is behind", bounds{batches: 1, segments: 2, fences: 1, alive: true, behind: true, crashes: n3{0, 1, 0}}},
	{"power loss", bounds{batches: 1, segments: 2, fences: 1, crashes: n3{1, 1, 0}}},
	{"a follower's disk forgets", bounds{batches: 1, segments: 2, fences: 1, crashes: n3{1, 0, 0}, rots: n3{0, 2, 0}}},
	{"the leader's disk forgets", bounds{batches: 1, segments: 2, fences: 1, crashes: n3{0, 1, 0}, rots: n3{2, 0, 0}}},
	{"a follower's disk is lost", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, wipes: n3{0, 1, 0}}},
	{"the leader's disk is lost", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, alive: true, wipes: n3{1, 0, 0}}},
	{"a file is lost", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, files: n3{0, 1, 0}}},
}

// wide are worlds in which more meets more. They take minutes.
var wide = []named{
	{"zombies of two segments", bounds{batches: 2, segments: 3, freezes: 1, fences: 2, alive: true}},
	{"two coordinators and three segments", bounds{batches: 2, segments: 3, freezes: 2, fences: 1, stale: true, alive: true}},
	{"all are told, all read", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, tellAll: true, readers: true, late: true}},
	{"leaders killed", bounds{batches: 2, segments: 3, fences: 2, alive: true, crashes: n3{1, 1, 0}}},
	{"followers killed", bounds{batches: 2, segments: 2, freezes: 1, fences: 1, losses: true, crashes: n3{0, 1, 1}}},
	{"the view is behind", bounds{batches: 1, segments: 3, fences: 2, behind: true, crashes: n3{0, 1, 0}}},
	{"two coordinators and a restart", bounds{batches: 1, segments: 3, freezes: 1, fences: 1, stale: true, alive: true, crashes: n3{0, 1, 0}}},
	{"power loss", bounds{batches: 2, segments: 2, fences: 1, alive: true, crashes: n3{1, 1, 1}}},
	{"power loss, and a follower's disk forgets", bounds{batches: 2, segments: 2, fences: 1, alive: true, crashes: n3{1, 0, 1}, rots: n3{0, 3, 0}}},
	{"power loss, and the leader's disk forgets", bounds{batches: 2, segments: 2, fences: 1, alive: true, crashes: n3{0, 1, 1}, rots: n3{3, 0, 0}}},
	{"power loss, and a disk is lost", bounds{batches: 2, segments: 2, fences: 1, alive: true, crashes: n3{1, 0, 1}, wipes: n3{0, 1, 0}}},
	{"power loss, and a file is lost", bounds{batches: 2, segments: 2, fences: 1, alive: true, crashes: n3{1, 0, 1}, files: n3{0, 1, 0}}},
}

// TestSealHolds searches each world for an acked record that is lost, and finds none.
func TestSealHolds(t *testing.T) {
	passed, searched := milestone(0), 0
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			m := newModel(w.bounds, plant{})
			r := explore(m, deep)
			passed |= m.passed
			searched++
			require.Nil(t, r.found)
			require.True(t, r.exhausted || race, "%d states and no end", r.states)
			t.Logf("%d states, all: %v", r.states, r.exhausted)
		})
	}
	require.True(t, race || searched < len(worlds) || passed == allMilestones, "%b: a search that never comes by something says nothing of it", passed)
}

// TestSealHoldsInWiderWorlds is for scripts/soak.sh.
func TestSealHoldsInWiderWorlds(t *testing.T) {
	if os.Getenv("EASTGUARD_SOAK") == "" {
		return
	}
	for _, w := range wide {
		t.Run(w.name, func(t *testing.T) {
			r := explore(newModel(w.bounds, plant{}), 3*deep)
			require.Nil(t, r.found)
			t.Logf("%d states, all: %v", r.states, r.exhausted)
		})
	}
}

// TestPlantsAreFound breaks one rule at a time. Each must be noticed in a small world, and by the rule it breaks.
func TestPlantsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant plant
		world bounds
		finds string
	}{
		{
			"a follower acks before its fsync",
			plant{ackBeforeFsync: true},
			bounds{batches: 1, segments: 1, crashes: n3{1: 1}},
			"I1",
		},
		{
			"an extent is taken without a fence",
			plant{extentWithoutFence: true},
			bounds{batches: 1, segments: 2, fences: 1},
			"I1",
		},
		{
			"an extent is taken before the fence",
			plant{extentBeforeFence: true},
			bounds{batches: 1, segments: 2, fences: 1},
			"I1",
		},
		{
			"the longest unbroken copy decides",
			plant{maximum: true},
			bounds{batches: 1, segments: 2, fences: 1},
			"I6",
		},
		{
			"an ack counts after the freeze",
			plant{lateAck: true},
			bounds{batches: 1, segments: 2, freezes: 1},
			"I1",
		},
		{
			"a frozen leader thaws",
			plant{thaw: true},
			bounds{batches: 1, segments: 2, freezes: 1},
			"",
		},
		{
			"a fence dies with the file",
			plant{fenceDiesWithFile: true},
			bounds{batches: 1, segments: 2, fences: 1, tellAll: true, late: true},
			"I1",
		},
		{
			"a missing file counts as empty",
			plant{missingIsEmpty: true},
			bounds{batches: 1, segments: 2, fences: 1, files: n3{1: 1}},
			"I1",
		},
		{
			"a restarted leader resumes",
			plant{leaderResumes: true},
			bounds{batches: 2, segments: 1, crashes: n3{0: 1}},
			"I1",
		},
		{
			"a roll ends whatever is active",
			plant{unguardedRoll: true},
			bounds{batches: 2, segments: 3, freezes: 1, stale: true},
			"",
		},
		{
			"the shortest of restarted copies decides",
			plant{minimumOfRestarted: true},
			bounds{batches: 1, segments: 2, fences: 1, rots: n3{1: 1}},
			"I1",
		},
		{
			"another disk answers under the same name",
			plant{anyDisk: true},
			bounds{batches: 1, segments: 2, fences: 1, wipes: n3{1: 1}},
			"I1",
		},
		{
			"another process of the node leads the segment and passes for the first",
			plant{bootIgnored: true},
			bounds{batches: 2, segments: 1, rots: n3{0: 2}},
			"I1",
		},
		{
			"nobody writes down that acks from memory may be gone",
			plant{lossUnrecorded: true},
			bounds{batches: 1, segments: 2, fences: 1, memory: true, crashes: n3{0, 1, 1}},
			"I1",
		},
		{
			"who does not list a segment never held it",
			plant{unlistedIsUnbroken: true},
			bounds{batches: 1, segments: 2, fences: 1, rots: n3{1: 2}},
			"I1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := explore(newModel(c.world, plant{}), deep)
			require.Nil(t, whole.found, "the same world, unbroken")
			require.True(t, whole.exhausted || race)

			broken := explore(newModel(c.world, c.plant), planted)
			require.NotNil(t, broken.found, "not found in %d states", broken.states)
			require.Contains(t, broken.found.what, c.finds)
			t.Logf("found in %d states: %s", broken.states, broken.found)
		})
	}
}
