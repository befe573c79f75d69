package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

var start = time.Unix(1_000, 0)

func after(d time.Duration) time.Time { return start.Add(d) }

// ledByN1 is a leader with one follower, whose own disk holds one batch of one record.
func ledByN1(c Config) *Leader[string] {
	c.Self, c.Followers = "n1", []base.NodeID{"n2"}
	l := NewLeader[string](c)
	l.Append(1, 1, "a")
	l.LocalDurable(1, start)
	l.Ready()
	return l
}

func TestALeaderIsIdleOnceEverybodyKnowsTheCommit(t *testing.T) {
	l := ledByN1(Config{})
	l.FollowerAck("n2", 1, start)
	require.EqualValues(t, 1, l.Commit())
	require.False(t, l.Idle(), "n2 has not been told of it")
	require.Len(t, l.Ready().Sends, 1)
	require.True(t, l.Idle())
	l.FollowerDown("n2", start)
	require.False(t, l.Idle(), "somebody has to give the link up")
	l.Tick(after(50 * time.Millisecond))
	require.Equal(t, []base.NodeID{"n2"}, l.Lost())
	require.True(t, l.Idle())
}

func TestTheFirstCauseOfADrainStands(t *testing.T) {
	l := ledByN1(Config{})
	l.Drain(base.CauseAge, start)
	l.Drain(base.CauseDataPressure, start)
	l.FollowerAck("n2", 1, start)
	r := l.Ready()
	require.True(t, r.AskRoll)
	require.Equal(t, base.CauseAge, r.Roll.Cause)
}

func TestASealedSegmentAsksForNoSeal(t *testing.T) {
	l := ledByN1(Config{})
	l.Freeze(base.CauseReplicaFailure, nil, start)
	require.NoError(t, l.Sealed(0))
	require.False(t, l.Ready().AskRoll)
}

func TestOnlyALeadingLeaderFreezesForAFollowerItLost(t *testing.T) {
	l := ledByN1(Config{})
	l.FollowerLost("n2", start)
	require.Equal(t, Frozen, l.State())
	require.True(t, l.Ready().AskRoll)
	require.False(t, l.FreezeIfLost(start), "it did before")
}

func TestAFollowerWhoseLinkIsDownIsNotLate(t *testing.T) {
	l := ledByN1(Config{Redial: 2 * time.Second})
	l.FollowerDown("n2", start)
	for at := time.Duration(0); at < 2*time.Second; at += 100 * time.Millisecond {
		l.Tick(after(at))
		require.Empty(t, l.Ready().Late)
		require.Empty(t, l.Lost())
	}
	l.Tick(after(2 * time.Second))
	require.Equal(t, []base.NodeID{"n2"}, l.Lost())
}

func TestALinkThatIsReportedDownAgainHasBeenDownSinceTheFirst(t *testing.T) {
	l := ledByN1(Config{})
	l.FollowerDown("n2", start)
	l.FollowerDown("n2", after(30*time.Millisecond))
	l.Tick(after(50 * time.Millisecond))
	require.Equal(t, []base.NodeID{"n2"}, l.Lost())
}

func TestATickOfThePastTakesNoWaitingBack(t *testing.T) {
	l := ledByN1(Config{})
	for at := time.Duration(0); at <= 700*time.Millisecond; at += 100 * time.Millisecond {
		l.Tick(after(at))
		require.Empty(t, l.Ready().Late)
	}
	l.Tick(after(600 * time.Millisecond))
	l.Tick(after(650 * time.Millisecond))
	require.Equal(t, []base.NodeID{"n2"}, l.Ready().Late)
}

var leader = Source{Node: "n1", Boot: 1}

func opening() *Follower {
	f := NewFollower(0)
	f.Open(leader)
	return f
}

func following() *Follower {
	f := opening()
	f.Opened()
	f.Ready()
	return f
}

func TestWhatALeaderTellsBeforeTheOpenIsDurableCounts(t *testing.T) {
	f := opening()
	f.Commit(leader, 1)
	f.Opened()
	require.Equal(t, Take, f.Append(leader, 0, 1))
	f.Durable(1)
	require.EqualValues(t, 1, f.CommitEnd())
}

func TestWhatIsDroppedBeforeTheOpenIsDurableIsAskedForAfterIt(t *testing.T) {
	f := opening()
	f.Dropped()
	f.Opened()
	require.False(t, f.Ready().Want, "there is no room yet")
	f.Room()
	require.True(t, f.Ready().Want)
}

func TestAGapIsAskedForOnce(t *testing.T) {
	f := following()
	require.Equal(t, Gap, f.Append(leader, 2, 3))
	require.False(t, f.Idle(), "something is to come")
	require.True(t, f.Ready().Want)
	f.Room()
	require.False(t, f.Ready().Want, "it never was full")
	require.Equal(t, Duplicate, f.Open(leader))
	f.Ready()
	require.True(t, f.Idle())
	require.Equal(t, Gap, f.Append(leader, 2, 3))
	require.True(t, f.Ready().Want, "a new session knows nothing of what was asked for in the old one")
}
