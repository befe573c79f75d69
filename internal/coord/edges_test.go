package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// bareLoop is a loop that nothing runs.
func bareLoop(t *testing.T) *loop {
	return newLoop(&Coord{ctx: t.Context(), idle: newIdlePace(200)}, base.RootShard)
}

// Of a segment that says nothing of its leader's start, as those of an older version, no start is too new.
func TestASegmentWithoutStartsIsLedByAnyStart(t *testing.T) {
	l, now := bareLoop(t), time.Unix(1000, 0)
	on := base.Replica{Node: "n2"}
	a := &active{Segment: &meta.Segment{ID: 7, Replicas: []base.Replica{on}}}
	l.known["n2"] = life{boot: 5}
	l.judge(a, now)
	require.Zero(t, l.recover.len())
	a.Boots = []uint64{5}
	l.judge(a, now)
	require.Zero(t, l.recover.len(), "it is the start that was placed")
	a.Boots = []uint64{4}
	l.judge(a, now)
	require.Equal(t, 1, l.recover.len())
}

// Who is silent may answer a fence all the same: only where all are known to be gone nobody is asked.
func TestWhoIsOnlySilentIsAskedForItsFence(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		w.place("orders", base.TopicConfig{MinReplicas: 1}, "n2", "n3")
		settle()
		w.touch("n3", Contact{Kept: true, Silent: 500 * time.Millisecond})
		w.kill("n2")
		w.awaitSealed(t, "orders", 10*time.Second)
	})
}

// A leader that has started anew does not become one that has led all the time by being heard.
func TestALeaderThatStartedAnewIsNotFoundAgain(t *testing.T) {
	rs, now := newRecoveries(newIdlePace(200)), time.Unix(1000, 0)
	a := &active{Segment: &meta.Segment{ID: 7}}
	rs.lost(a, base.CauseLeaderFailure, false, now)
	rs.foundAgain(7)
	require.Zero(t, rs.len(), "it was only thought to be gone")
	rs.lost(a, base.CauseLeaderFailure, false, now)
	rs.lost(a, base.CauseRecovery, false, now)
	rs.foundAgain(7)
	require.Equal(t, 1, rs.len())
}

// A gap is counted from the first who waits, not from when nobody did.
func TestAGapBeginsWithWhoWaits(t *testing.T) {
	rs, now := newRecoveries(newIdlePace(200)), time.Unix(1000, 0)
	r, _ := rs.file(base.RangeRef{}, 7, 1, nobodys, now)
	rs.hurry(7, now.Add(time.Minute))
	require.Equal(t, now.Add(time.Minute).UnixMilli(), r.SinceMs)
	rs.hurry(7, now.Add(2*time.Minute))
	require.Equal(t, now.Add(time.Minute).UnixMilli(), r.SinceMs, "somebody waits already")
}

// A node that confirms an earlier version of an assignment has not heard of this one.
func TestAnEarlierVersionConfirmsNothing(t *testing.T) {
	l, now := bareLoop(t), time.Unix(1000, 0)
	b, p := &outbox{to: base.Replica{Node: "n2"}}, &pile{}
	p.flying.segments = map[base.SegmentID]base.RangeRef{7: {Range: 1}}
	asg := &meta.Assignment{Segment: 7, Version: 3}
	confirm := func(version base.Version) {
		l.onConfirmation(b, p, &meta.Confirmation{Kind: meta.ConfirmSegment, Segment: 7, Version: version}, asg, now)
	}
	confirm(2)
	require.Contains(t, p.flying.segments, base.SegmentID(7))
	confirm(3)
	require.Empty(t, p.flying.segments)
}

// A leader that is back as another start has not led its segments all the time.
func TestWhoIsBackAsAnotherStartIsNotFoundAgain(t *testing.T) {
	l, now := bareLoop(t), time.Unix(1000, 0)
	seg := &meta.Segment{ID: 7, Replicas: []base.Replica{{Node: "n2"}}} // which start leads it, it does not say
	ref := base.RangeRef{Topic: base.TopicID{1}, Range: 1}
	a := l.actives.set(ref, seg, base.TopicConfig{})
	l.recover.lost(a, base.CauseLeaderFailure, false, now)
	l.noteLoss("n2", life{boot: 1, lost: gone}, life{boot: 2}, now)
	require.Equal(t, 1, l.recover.len())
	l.noteLoss("n2", life{boot: 1, lost: gone}, life{boot: 1}, now)
	require.Zero(t, l.recover.len())
}

func TestWhatIsHeldUpBySomethingElseIsNotUnplaced(t *testing.T) {
	u, now := make(unplaced), time.Unix(1000, 0)
	u.note(planner.Waiting{Segment: 7, Err: base.Errorf(base.CodeNotEnoughNodes, "place segment", "too few")}, now)
	require.Len(t, u.list(now), 1)
	u.note(planner.Waiting{Segment: 7, Err: base.Errorf(base.CodeUnreachable, "recover segment", "nobody is there")}, now)
	require.Empty(t, u.list(now))
}

// Dates that are set anew and anew take no more memory than topics.
func TestAnAgendaKeepsNoOldDates(t *testing.T) {
	a := newAgenda()
	for ms := range int64(10_000) {
		a.set(base.TopicID{1}, ms)
	}
	require.LessOrEqual(t, len(a.heap), 66)
	next, ok := a.next()
	require.True(t, ok)
	require.EqualValues(t, 9_999, next)
}
