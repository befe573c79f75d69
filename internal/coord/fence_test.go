package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// Who is connected is waited for, for a while, once somebody has answered; nobody for ever.
func TestWhenFencesAreSettled(t *testing.T) {
	sent := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		open, awaited, answers int
		after                  time.Duration
		want                   bool
	}{
		"all have answered":                        {0, 0, 3, 0, true},
		"nobody has":                               {3, 3, 0, 200 * time.Millisecond, false},
		"nobody has, and nobody is connected":      {3, 0, 0, 200 * time.Millisecond, false},
		"nobody will":                              {3, 3, 0, 5 * time.Second, true},
		"one that is connected has not":            {1, 1, 2, 199 * time.Millisecond, false},
		"it had its time":                          {1, 1, 2, 200 * time.Millisecond, true},
		"only who is not connected has not":        {1, 0, 2, 0, true},
		"one has, of the others nobody is there":   {2, 0, 1, 0, true},
		"one has, the others are slow beyond that": {2, 2, 1, 5 * time.Second, true},
	} {
		f := fencing{open: c.open, awaited: c.awaited, until: sent.Add(200 * time.Millisecond), end: sent.Add(5 * time.Second)}
		require.Equal(t, c.want, f.settled(c.answers, sent.Add(c.after)), name)
	}
}

// What comes late counts, for a fence is for ever; but it is no answer to the questions that were asked since.
func TestALateAnswerCountsOnce(t *testing.T) {
	rs := newRecoveries(newIdlePace(200))
	r := &recovery{Recovery: planner.Recovery{Segment: 7}, state: fencesOut, fencing: fencing{round: 2, open: 3, awaited: 2}}
	rs.all[7] = r
	answer := func(node base.NodeID) []meta.FenceAnswer {
		return []meta.FenceAnswer{{Segment: 7, Replica: base.Replica{Node: node}}}
	}
	rs.onFenced(fenced{round: 1, awaited: true, segments: []base.SegmentID{7}, answers: answer("n1")})
	require.Len(t, r.Answers, 1)
	require.Equal(t, 3, r.open, "of the second round nobody has answered")
	require.Equal(t, 2, r.awaited)
	rs.onFenced(fenced{round: 2, awaited: true, segments: []base.SegmentID{7}, answers: answer("n2")})
	require.Len(t, r.Answers, 2)
	require.Equal(t, 2, r.open)
	require.Equal(t, 1, r.awaited)
	rs.onFenced(fenced{round: 2, segments: []base.SegmentID{7}}) // it was not connected, and does not answer
	require.Len(t, r.Answers, 2)
	require.Equal(t, 1, r.open)
	require.Equal(t, 1, r.awaited)

	r.state = toFence
	rs.onFenced(fenced{round: 2, segments: []base.SegmentID{7}, answers: answer("n3")})
	require.Len(t, r.Answers, 2, "it is asked anew")
}

// A leader that is heard again goes on, unless its segment may have been fenced.
func TestWhoeverIsHeardAgainGoesOn(t *testing.T) {
	for state, drops := range map[recoveryState]bool{toFence: true, fencesOut: false, answered: false} {
		rs := newRecoveries(newIdlePace(200))
		rs.all[7] = &recovery{Recovery: planner.Recovery{Segment: 7}, state: state, lost: true}
		rs.foundAgain(7)
		require.Equal(t, drops, rs.all[7] == nil, "state %d", state)
	}
	rs := newRecoveries(newIdlePace(200))
	rs.all[7] = &recovery{Recovery: planner.Recovery{Segment: 7}} // for another reason than that its leader was lost
	rs.foundAgain(7)
	require.NotNil(t, rs.all[7])
}
