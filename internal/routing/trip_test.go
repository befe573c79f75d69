package routing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// forwards is how often a node has sent a request on.
func (m *member) forwards() (n uint64) {
	for _, c := range m.r.metrics.forwarded {
		n += c.Value()
	}
	return n
}

func TestResults(t *testing.T) {
	require.Equal(t, "answered", resultOf(nil).String())
	require.Equal(t, "refused", resultOf(base.Errorf(base.CodeTopicNotFound, "", "")).String())
	require.Equal(t, "elsewhere", resultOf(base.Errorf(base.CodeNotLeader, "", "")).String())
}

func TestServedHere(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2")
		c.lead("n1", 3)
		c.believe("n1", 3, "n1")
		require.Equal(t, "look by n1", c.mustAsk("n1", wire.KindRoute, "look"))
		require.Zero(t, c.nodes["n1"].forwards())
	})
}

func TestForwardedOnce(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 3)
		c.believe("n3", 3, "n1", "n2", "n3")
		require.Equal(t, "look by n3", c.mustAsk("n1", wire.KindRoute, "look"))
		require.EqualValues(t, 1, c.nodes["n1"].forwards())
		require.Zero(t, c.nodes["n1"].r.metrics.retried.Value())
	})
}

// A claim that is old leads to a node that knows better: it passes the request on, and the next one goes there directly.
func TestOldClaimIsPassedOnAndCorrected(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 4)
		c.believe("n2", 3, "n1")
		c.believe("n3", 4, "n2", "n3")
		require.Equal(t, "look by n3", c.mustAsk("n1", wire.KindRoute, "look"))
		require.EqualValues(t, 1, c.nodes["n2"].forwards())
		require.EqualValues(t, 1, c.nodes["n1"].r.metrics.forwarded[answered].Value())
		require.EqualValues(t, 1, c.nodes["n2"].r.metrics.received[0][answered].Value())
		require.EqualValues(t, 1, c.nodes["n3"].r.metrics.received[1][answered].Value(), "it has changed nodes twice")
		claim, ok := c.nodes["n1"].r.Leader(shard)
		require.True(t, ok)
		require.Equal(t, Claim{Leader: "n3", Term: 4}, claim)
		c.mustAsk("n1", wire.KindRoute, "look")
		require.EqualValues(t, 1, c.nodes["n2"].forwards())
	})
}

// Two nodes that each believe the other in charge do not send a request back and forth.
func TestCircularBeliefs(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 5)
		c.believe("n2", 3, "n1")
		c.believe("n1", 3, "n2")
		c.believe("n3", 5, "n3")
		start := time.Now()
		require.Equal(t, "look by n3", c.mustAsk("n1", wire.KindRoute, "look"))
		require.Zero(t, time.Since(start), "found without a pause, among the voters")
		require.LessOrEqual(t, c.nodes["n2"].forwards(), uint64(1))
	})
}

// A chain of old claims longer than the limit of hops ends, and the leader is found another way.
func TestHopLimit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3", "n4", "n5", "n6")
		c.lead("n6", 9)
		c.believe("n2", 1, "n1")
		c.believe("n3", 2, "n2")
		c.believe("n4", 3, "n3")
		c.believe("n5", 4, "n4")
		c.believe("n6", 5, "n5")
		c.believe("n6", 9, "n6")
		require.Equal(t, "look by n6", c.mustAsk("n1", wire.KindRoute, "look"))

		e := envelope{Kind: wire.KindRoute, Shard: shard, Path: []base.NodeID{"a", "b", "c", "d"}, Message: []byte("look")}
		_, _, err := c.nodes["n2"].r.open(encode(e))
		require.ErrorIs(t, err, base.CodeInvalidArgument)
	})
}

// A node that does not lead says who does, with an address that a client can use.
func TestRefusalNamesTheLeader(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2")
		c.believe("n2", 3, "n1")
		_, err := c.nodes["n1"].r.pass(t.Context(), c.nodes["n1"].request(wire.KindRoute, "look"), []base.NodeID{"a", "b", "c"})
		require.ErrorIs(t, err, base.CodeNotLeader)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, base.Redirect{Node: "n2", Address: "n2:2921"}, e.Redirect)
	})
}

// After a kill nobody leads for a while. Requests wait, and go on within moments of the new leader's claim.
func TestDeadLeader(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("", 0)
		c.believe("n3", 3, "n1", "n2", "n3")
		c.set(c.lost, "n3")
		start := time.Now()
		time.AfterFunc(620*time.Millisecond, func() {
			c.lead("n2", 4)
			c.believe("n2", 4, "n2", "n1")
			c.nodes["n1"].r.Wake()
		})
		require.Equal(t, "make by n2", c.mustAsk("n1", wire.KindCreateTopic, "make"))
		require.Less(t, time.Since(start), 650*time.Millisecond)
		require.Equal(t, []string{"make"}, c.done)
	})
}

// The same without anybody's word of it: the voters are asked again and again.
func TestDeadLeaderWithoutClaims(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3", "n4")
		c.believe("n3", 3, "n4")
		c.set(c.lost, "n3")
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() {
			c.lead("n2", 4)
			c.believe("n2", 4, "n2")
		})
		require.Equal(t, "make by n2", c.mustAsk("n4", wire.KindCreateTopic, "make"))
		require.Less(t, time.Since(start), 800*time.Millisecond)
	})
}

// A request that is under way at a leader that falls silent does not wait for the connection to be given up.
func TestSilentLeader(t *testing.T) {
	for name, tell := range map[string]func(*cluster){
		"connection": func(c *cluster) { c.set(c.lost, "n3") },
		"claim":      func(c *cluster) { c.believe("n2", 4, "n1"); c.nodes["n1"].r.Wake() },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				c := newCluster(t, "n1", "n2", "n3")
				c.lead("n3", 3)
				c.believe("n3", 3, "n1", "n2", "n3")
				c.set(c.silent, "n3")
				start := time.Now()
				time.AfterFunc(500*time.Millisecond, func() {
					c.lead("n2", 4)
					c.believe("n2", 4, "n2")
					tell(c)
				})
				require.Equal(t, "make by n2", c.mustAsk("n1", wire.KindCreateTopic, "make"))
				require.Less(t, time.Since(start), 800*time.Millisecond)
			})
		})
	}
}

// Without a request id a change whose answer is lost must not be tried again: nobody would recognise it.
func TestUnknownWithoutRequestID(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 3)
		c.believe("n3", 3, "n1", "n2", "n3")
		c.set(c.late, "n3")
		req := c.nodes["n1"].request(wire.KindCreateTopic, "make")
		req.ID = base.RequestID{}
		_, err := c.nodes["n1"].r.Do(t.Context(), req)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		require.Equal(t, []string{"make"}, c.done)
	})
}

// With one it is, and what a retry is told about the world as an earlier try may have left it is not "not applied".
func TestOutcomesAfterALostAnswer(t *testing.T) {
	for message, want := range map[string]struct {
		code    base.Code
		outcome base.Outcome
	}{
		"make":    {base.CodeOK, base.NotApplied},
		"missing": {base.CodeTopicNotFound, base.Unknown},
		"exists":  {base.CodeTopicExists, base.NotApplied},
		"applied": {base.CodeNoLeader, base.Applied},
	} {
		t.Run(message, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				c := newCluster(t, "n1", "n2", "n3")
				c.lead("n3", 3)
				c.believe("n3", 3, "n1", "n2", "n3")
				c.set(c.late, "n3")
				time.AfterFunc(100*time.Millisecond, func() {
					c.lead("n2", 4)
					c.believe("n2", 4, "n1", "n2")
				})
				_, err := c.ask("n1", wire.KindCreateTopic, message)
				if want.code == base.CodeOK {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, want.code)
				require.Equal(t, want.outcome, base.OutcomeOf(err))
			})
		})
	}
}

// A request that only looks has no unknown outcome, however many answers were lost.
func TestReadsAreNeverUnknown(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 3)
		c.believe("n3", 3, "n1", "n2", "n3")
		c.set(c.late, "n3")
		_, err := c.ask("n1", wire.KindRoute, "look")
		require.Error(t, err)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))
	})
}

// Who asks is told before he loses patience, which the SDK does after four seconds.
func TestNobodyLeads(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		start := time.Now()
		_, err := c.ask("n1", wire.KindCreateTopic, "make")
		require.ErrorIs(t, err, base.CodeNoLeader)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))
		require.GreaterOrEqual(t, time.Since(start), 3*time.Second)
		require.Less(t, time.Since(start), 4*time.Second)
	})
}

// A leader that we cannot reach is reached through somebody who can.
func TestThroughAnother(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		c.lead("n3", 3)
		c.believe("n3", 3, "n1", "n2", "n3")
		cut := &cutOff{member: c.nodes["n1"], from: "n3"}
		c.nodes["n1"].r.o.Peers = cut
		require.Equal(t, "look by n3", c.mustAsk("n1", wire.KindRoute, "look"))
	})
}

// A request about one shard waits for that shard alone.
func TestShardsDoNotWaitForEachOther(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := New(Options{Self: "n1", Replicas: &member{}, MaxRequests: 3, MaxShardRequests: 2})
		release := make(chan struct{})
		hold := func() { <-release }
		require.NoError(t, r.Spawn(shard, hold))
		require.NoError(t, r.Spawn(shard, hold))
		require.ErrorIs(t, r.Spawn(shard, hold), base.CodeBusy)
		other := base.ShardID{Root: 8}
		require.NoError(t, r.Spawn(other, hold))
		require.ErrorIs(t, r.Spawn(base.ShardID{Root: 9}, hold), base.CodeBusy)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Close(ctx)
		require.Error(t, ctx.Err(), "Close waited for what is under way")
		require.ErrorIs(t, r.Spawn(other, hold), base.CodeShuttingDown)
		close(release)
		r.Close(t.Context())
		synctest.Wait()
	})
}

// What the leader has to say when the time is up arrives in time.
func TestTheLeadersTimeoutArrives(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2")
		c.lead("n2", 3)
		c.believe("n2", 3, "n1", "n2")
		c.nodes["n2"].r.o.Prepare = func(kind wire.Kind, message []byte, shard base.ShardID) (Request, error) {
			return Request{Kind: kind, Shard: shard, Changes: true, Serve: func(ctx context.Context) ([]byte, error) {
				<-ctx.Done()
				return nil, base.Errorf(base.CodeTimeout, "serve", "made, but not open yet").WithOutcome(base.Applied)
			}}, nil
		}
		_, err := c.ask("n1", wire.KindCreateTopic, "make")
		require.ErrorContains(t, err, "made, but not open yet")
		require.Equal(t, base.Applied, base.OutcomeOf(err))
	})
}
