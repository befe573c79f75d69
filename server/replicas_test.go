package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// Reads from any of a range's replicas.

// trio is three machines on cables, and a topic of one range that all of them hold.
type trio struct {
	t      *testing.T
	nodes  map[base.NodeID]*node
	cables map[base.NodeID]*cable
	all    []*machine
}

func newTrio(t *testing.T) *trio {
	c := &trio{t: t, nodes: make(map[base.NodeID]*node), cables: make(map[base.NodeID]*cable)}
	for i := range 3 {
		m := newMachine(t, i+1)
		c.cables[base.NodeID(m.cfg.NodeID)] = m.wire()
		c.all = append(c.all, m)
	}
	t.Cleanup(func() {
		for _, cable := range c.cables {
			cable.putBack()
		}
	})
	seeds(c.all, func(_ int, cfg *config.Config) { cfg.BootstrapExpect = 3 })
	together(c.all, (*machine).start)
	formed(t, c.all)
	for shard := range c.all[0].cfg.Shards {
		soon(t, fmt.Sprintf("shard %d has its voters", shard), func() bool {
			return len(c.all[0].srv.host.Voters(base.ShardID{Root: uint16(shard)})) == len(c.all)
		})
	}
	for _, m := range c.all {
		c.nodes[m.srv.id.Node] = m.client()
	}
	return c
}

// topic makes a topic of one range and says who leads it and who follows.
func (c *trio) topic(name string, cfg base.TopicConfig) (base.RangeRef, *node, []*node) {
	c.t.Helper()
	soon(c.t, "all nodes are connected", func() bool {
		for _, n := range c.nodes {
			if view := n.connected(); !lives(view, "n1") || !lives(view, "n2") || !lives(view, "n3") {
				return false
			}
		}
		return true
	})
	ref := c.nodes["n1"].create(name, cfg)
	leader, followers := c.roles(name)
	soon(c.t, "it has three replicas, if not at once where a busy machine made one of them late", func() bool {
		leader, followers = c.roles(name)
		return len(followers) == 2
	})
	for _, f := range followers {
		soon(c.t, "its followers have opened the segment", func() bool { return len(f.store.Segments(ref)) > 0 })
	}
	return ref, leader, followers
}

// roles are those in the active segment of a topic of one range. On a busy machine a follower may be late, and left out.
func (c *trio) roles(name string) (leader *node, followers []*node) {
	c.t.Helper()
	r := must[wire.RouteResponse](c.nodes["n1"], wire.KindRoute, wire.RouteRequest{Name: name}).Topic.Ranges[0]
	for _, id := range r.Active.Replicas[1:] {
		followers = append(followers, c.nodes[id])
	}
	return c.nodes[r.Active.Replicas[0]], followers
}

func (c *trio) cable(n *node) *cable { return c.cables[n.id.Node] }

// parked is a fetch that waits at a node.
type parked struct {
	t       *testing.T
	answers chan fetched
	asked   time.Time
}

// park lets a fetch wait at a node, for far longer than any test should take.
func (n *node) park(ref base.RangeRef, offset int64) parked {
	n.t.Helper()
	before := n.parked.len()
	p := parked{t: n.t, answers: make(chan fetched, 1), asked: time.Now()}
	req := wire.FetchRequest{
		MaxWaitMs: 30_000, MinBytes: 1, MaxBytes: 8 << 20,
		Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, Offset: offset, MaxBytes: 8 << 20}},
	}
	_, err := n.conn.Go(wire.KindFetch, wire.Encode(req), nil, func(r mux.Response, err error) {
		var a wire.FetchResponse
		if err == nil {
			err = wire.Decode(r.Message, &a)
		}
		if err != nil {
			a.Ranges = []wire.FetchRangeResult{{Code: base.CodeOf(err)}}
		}
		f := fetched{FetchRangeResult: a.Ranges[0]}
		f.decode(n.t, r.Payload, offset)
		p.answers <- f
	})
	require.NoError(n.t, err)
	eventually(n.t, func() bool { return n.parked.len() > before })
	return p
}

// woken is the answer, which must come long before the wait is over.
func (p parked) woken(why string) fetched {
	p.t.Helper()
	select {
	case f := <-p.answers:
		require.Less(p.t, time.Since(p.asked), maxFetchWait, "a waiting fetch was not woken by "+why)
		return f
	case <-time.After(patience):
		require.Fail(p.t, "a waiting fetch has no answer after "+why)
		return fetched{}
	}
}

// Every replica gives the same records, and lets who has read them all wait for more.
func TestEveryReplicaServesReads(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, followers := c.topic("orders", base.TopicConfig{})
	values := numbered(30)
	leader.mustProduce(ref, values...)
	for _, n := range append(followers, leader) {
		require.Equal(t, values, n.readAll(ref, 0, len(values)))
	}

	t.Run("commit", func(t *testing.T) {
		var waits []parked
		for _, f := range followers {
			waits = append(waits, f.park(ref, 30))
		}
		leader.mustProduce(ref, "one more")
		for _, w := range waits {
			f := w.woken("the commit")
			require.Equal(t, []string{"one more"}, f.values)
			require.EqualValues(t, 31, f.Commit)
			require.Equal(t, wire.FetchActive, f.State)
		}
	})
	t.Run("seen", func(t *testing.T) { // elsewhere more was committed, the client says
		seen := func(r *wire.FetchRequest) { r.Ranges[0].SeenCommit = 40 }
		for _, f := range followers {
			a := f.fetch(ref, 31, 100*time.Millisecond, seen)
			require.Equal(t, base.CodeBehind, a.Code)
			require.EqualValues(t, 31, a.Commit, "it says how far it can prove")
			a = f.fetch(ref, 29, 100*time.Millisecond, seen)
			require.Equal(t, base.CodeOK, a.Code, "below the commit everybody has the same")
			require.EqualValues(t, 31, a.Next)
			a = f.fetch(ref, 35, 100*time.Millisecond)
			require.Equal(t, base.CodeBehind, a.Code)
		}
	})
	t.Run("stranger", func(t *testing.T) {
		a := leader.fetch(base.RangeRef{Topic: ref.Topic, Range: 9}, 0, 0)
		require.Equal(t, base.CodeNotReplica, a.Code)
	})
	t.Run("offsets", func(t *testing.T) { askForOffsets(t, ref, leader, followers) })
}

// The beginning everybody tells, the end the leader alone.
func askForOffsets(t *testing.T, ref base.RangeRef, leader *node, followers []*node) {
	ask := func(n *node, at wire.OffsetSpec, ms int64) wire.OffsetAnswer {
		return must[wire.ListOffsetsResponse](n, wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{{Ref: ref, At: at, TimeMs: ms}}}).Offsets[0]
	}
	require.EqualValues(t, 31, ask(leader, wire.OffsetLatest, 0).Offset)
	for _, f := range followers {
		a := ask(f, wire.OffsetEarliest, 0)
		require.Nil(t, a.Error)
		require.Zero(t, a.Offset)
		a = ask(f, wire.OffsetLatest, 0)
		require.NotNil(t, a.Error)
		require.Equal(t, base.CodeNotLeader, a.Error.Code)
		require.Equal(t, leader.id.Node, a.Error.Redirect.Node)
		require.NotEmpty(t, a.Error.Redirect.Address)
		a = ask(f, wire.OffsetAtTime, time.Now().Add(-time.Hour).UnixMilli())
		require.Nil(t, a.Error)
		require.Zero(t, a.Offset)
		require.Positive(t, a.TimeMs)
		a = ask(f, wire.OffsetAtTime, time.Now().Add(time.Hour).UnixMilli())
		require.Equal(t, base.CodeNotLeader, a.Error.Code, "nothing is so late: that is the end, which the leader knows")
	}
}

// Whoever waits at a follower is woken by whatever ends the wait.
func TestWaitersAtAFollowerAreWoken(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	t.Run("by a seal", func(t *testing.T) {
		ref, leader, followers := c.topic("sealed", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
		leader.mustProduce(ref, "first")
		for _, f := range followers {
			soon(t, "they know of it", func() bool { return f.fetch(ref, 0, 0).Commit == 1 })
		}
		waits := []parked{followers[0].park(ref, 1), followers[1].park(ref, 1)}
		seg := leader.store.Segments(ref)[0].Segment
		sealed := must[wire.SealSegmentResponse](leader, wire.KindSealSegment, wire.SealSegmentRequest{RequestID: requestID(), Segment: seg})
		require.EqualValues(t, 1, sealed.Boundary)
		c.append("sealed", ref, "second")
		for _, w := range waits {
			f := w.woken("the seal")
			require.Equal(t, base.CodeOK, f.Code)
			if len(f.values) == 0 { // it only told that the range goes on
				require.Equal(t, wire.FetchNext, f.State)
				require.EqualValues(t, 1, f.End)
			} else {
				require.Equal(t, []string{"second"}, f.values)
			}
		}
	})
	t.Run("by a delete", func(t *testing.T) {
		ref, leader, followers := c.topic("deleted", base.TopicConfig{})
		leader.mustProduce(ref, "only")
		soon(t, "it knows of it", func() bool { return followers[0].fetch(ref, 0, 0).Commit == 1 })
		w := followers[0].park(ref, 1)
		must[wire.DeleteTopicResponse](leader, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: "deleted"})
		require.Equal(t, base.CodeTopicNotFound, w.woken("the delete").Code)
	})
	t.Run("by silence", func(t *testing.T) {
		ref, leader, followers := c.topic("silent", base.TopicConfig{})
		leader.mustProduce(ref, "only")
		for _, f := range followers {
			soon(t, "they know of it", func() bool { return f.fetch(ref, 0, 0).Commit == 1 })
		}
		waits := []parked{followers[0].park(ref, 1), followers[1].park(ref, 1)}
		earliest := must[wire.ListOffsetsResponse](followers[0], wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{{Ref: ref, At: wire.OffsetEarliest}}})
		require.Nil(t, earliest.Offsets[0].Error)
		pulled := time.Now()
		c.cable(leader).pull()
		for _, w := range waits {
			f := w.woken("the silence")
			// The coordinator may have gone on with others meanwhile: then there is news of another kind.
			if f.Code != base.CodeOK {
				require.Equal(t, base.CodeBehind, f.Code)
				require.EqualValues(t, 1, f.Commit)
			}
		}
		t.Logf("told after %s", time.Since(pulled))
		soon(t, "the beginning is known without the leader, if not at once where the replica of the shard is behind", func() bool {
			earliest = must[wire.ListOffsetsResponse](followers[0], wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{{Ref: ref, At: wire.OffsetEarliest}}})
			failure := earliest.Offsets[0].Error
			require.True(t, failure == nil || failure.Code.Info().Retryable, "%v", failure)
			return failure == nil
		})
		require.Equal(t, []string{"only"}, followers[0].readAll(ref, 0, 1))
		c.cable(leader).putBack()
	})
	t.Run("by the broker's end", func(t *testing.T) {
		ref, leader, followers := c.topic("stopped", base.TopicConfig{})
		leader.mustProduce(ref, "only")
		last := followers[0]
		soon(t, "it knows of it", func() bool { return last.fetch(ref, 0, 0).Commit == 1 })
		w := last.park(ref, 1)
		for _, m := range c.all {
			if m.srv != nil && m.srv.id.Node == last.id.Node {
				m.stop()
			}
		}
		w.woken("the end of its broker")
	})
}

// Records of a range are found by time while a node that holds some of them is away, as long as others have them, too.
func TestOffsetsByTimeWithoutANode(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, _, _ := c.topic("orders", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	for range 100 {
		c.append("orders", ref, strings.Repeat("x", 20_000))
	}
	leader, followers := c.roles("orders")
	c.cable(followers[0]).pull()
	a := must[wire.ListOffsetsResponse](leader, wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{
		{Ref: ref, At: wire.OffsetAtTime, TimeMs: time.Now().Add(-time.Hour).UnixMilli()},
	}}).Offsets[0]
	require.Nil(t, a.Error)
	require.Zero(t, a.Offset)
}

// Who waits at a leader that is replaced behind its back is woken when it hears of that.
func TestWaiterAtALeaderThatIsReplaced(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, _ := c.topic("orders", base.TopicConfig{})
	leader.mustProduce(ref, "only")
	w := leader.park(ref, 1)
	c.cable(leader).pull()
	next := c.goesOn(ref, leader, "elsewhere")
	c.cable(leader).putBack()
	f := w.woken("the loss of its role")
	if len(f.values) == 0 {
		require.Contains(t, []base.Code{base.CodeOK, base.CodeBehind}, f.Code)
	} else {
		require.Equal(t, []string{"elsewhere"}, f.values, "it has become a follower")
	}
	require.Equal(t, []string{"only", "elsewhere"}, next.readAll(ref, 0, 2))
}

// Only the leader takes records. It tells, if it is asked to, where the time went, and a follower tells who leads.
func TestProduceToReplicas(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, followers := c.topic("orders", base.TopicConfig{})
	for _, f := range followers {
		_, err := f.produce(ref, makeBatch(t, -1, -1, "v"))
		var e *base.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, []base.Code{base.CodeNotLeader, base.CodeSegmentMoved}, e.Code)
		require.Equal(t, base.Redirect{Node: leader.id.Node, Address: leader.Addr()}, e.Redirect)
		require.Equal(t, base.NotApplied, e.Outcome)
	}
	req := wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: 10_000, Trace: true}
	a, payload, err := call[wire.ProduceResponse](leader, wire.KindProduce, req, makeBatch(t, -1, -1, "v"))
	require.NoError(t, err)
	require.Zero(t, a.Base)
	require.Equal(t, leader.id.Node, a.Replicas[0])
	require.ElementsMatch(t, []base.NodeID{"n1", "n2", "n3"}, a.Replicas)
	var trace wire.ProduceTrace
	require.NoError(t, wire.Decode(payload, &trace))
	require.Equal(t, leader.id.Node, trace.Node)
	require.Len(t, trace.Replicas, 2)
	require.LessOrEqual(t, trace.FsyncUs, trace.CommitUs)
	for _, r := range trace.Replicas {
		require.LessOrEqual(t, r.SentUs, r.AckUs)
		require.LessOrEqual(t, r.AckUs, trace.CommitUs)
	}
	req.Trace = false
	_, payload, err = call[wire.ProduceResponse](leader, wire.KindProduce, req, makeBatch(t, -1, -1, "v"))
	require.NoError(t, err)
	require.Empty(t, payload)
}

// A follower that is lost costs its segment, and the journal says whose fault it was.
func TestALostFollowerInTheJournal(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, followers := c.topic("orders", base.TopicConfig{})
	leader.mustProduce(ref, "first")
	lost := followers[0].id.Node
	c.cables[lost].pull()
	c.goesOn(ref, followers[0], "second")
	soon(t, "the shard's leader tells of the seal", func() bool {
		for _, n := range c.nodes {
			for _, e := range n.events(500) {
				if e.Type != "SEGMENT_SEALED" || e.Subject != "orders/r1" {
					continue
				}
				require.Equal(t, "REPLICA_FAILURE", e.Cause)
				require.Regexp(t, `(late|lost)=`+string(lost), e.Detail)
				require.Contains(t, e.Detail, "replicas="+string(leader.id.Node)+",")
				require.NotRegexp(t, `replicas=\S*`+string(lost), e.Detail)
				require.Contains(t, e.Detail, "end=1")
				return true
			}
		}
		return false
	})
	soon(t, "the new leader tells that it goes on", func() bool {
		for _, e := range leader.events(500) {
			if e.Type == "SEGMENT_OPENED" && e.Subject == "orders/r1" {
				require.Equal(t, "REPLICA_FAILURE", e.Cause)
				require.Contains(t, e.Detail, "role=leader")
				return true
			}
		}
		return false
	})
	d := must[wire.DescribeTopicResponse](leader, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "orders"}).Topic
	require.Equal(t, 2, len(d.Ranges[0].Segments))
	require.Contains(t, states(d.Ranges[0].Segments[0]), wire.ReplicaNoAnswer)
	require.Equal(t, []string{wire.ReplicaLeader, wire.ReplicaInSync}, states(d.Ranges[0].Segments[1]))
	require.Positive(t, d.Summary.UnderReplicated)
}
