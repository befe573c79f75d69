package coord

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a shard, its nodes and a Coord around them, in one process and without a disk.
type world struct {
	t     testing.TB
	coord *Coord
	self  base.Replica

	mu     sync.Mutex
	state  *meta.State
	index  uint64
	log    []meta.Command
	refuse error // Propose and View fail with it
	view   topology.View
	views  int
	node   *fakeNode // n1's
	nodes  map[base.NodeID]*fakeNode
	made   int

	contacts  map[base.NodeID]Contact
	deaf      map[base.NodeID]bool // nodes that nobody hears any more
	questions int                  // about that
}

// fakeNode is the data plane of a node: what it holds, and how it answers.
type fakeNode struct {
	mu       sync.Mutex
	held     map[base.SegmentID]meta.Assignment
	trims    map[base.RangeRef]int64
	deleted  map[base.TopicID]bool
	previous map[base.SegmentID]int64 // led before the last start, with what its log holds
	fenced   map[base.SegmentID]bool
	tells    int
	orders   int
	largest  int
	fail     error
	slow     time.Duration
	refuse   map[base.SegmentID]bool
	leaving  bool                    // takes nothing new
	lost     map[base.SegmentID]bool // segments for which nobody is found who knows the range's state
	replica  base.Replica
	boot     uint64
	ends     map[base.SegmentID]int64 // what it has of active segments
	damaged  map[base.SegmentID]bool
	fences   int  // messages
	hung     bool // takes messages and never answers
	asked    []meta.RollOrder
	obeys    bool // and ends the segments that it is asked to end
	stock    []meta.Held
	lossy    bool
	counts   int
}

func newFakeNode(r base.Replica) *fakeNode {
	return &fakeNode{
		held: map[base.SegmentID]meta.Assignment{}, trims: map[base.RangeRef]int64{}, deleted: map[base.TopicID]bool{},
		previous: map[base.SegmentID]int64{}, fenced: map[base.SegmentID]bool{}, refuse: map[base.SegmentID]bool{},
		lost: map[base.SegmentID]bool{}, ends: map[base.SegmentID]int64{}, damaged: map[base.SegmentID]bool{}, replica: r, boot: 1,
	}
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, self: base.Replica{Node: "n1", Disk: base.DiskID{1}}, state: meta.New(base.RootShard, 1),
		nodes: map[base.NodeID]*fakeNode{}, contacts: map[base.NodeID]Contact{}, deaf: map[base.NodeID]bool{},
	}
	w.node = newFakeNode(w.self)
	w.nodes["n1"] = w.node
	w.see("n1", w.self.Disk, 1)
	w.coord = w.newCoord()
	return w
}

// see makes the view know a start of a node.
func (w *world) see(id base.NodeID, disk base.DiskID, boot uint64) {
	w.mu.Lock()
	w.view = topology.Reduce(w.view, topology.Event{Seen: &topology.Seen{ID: id, Disk: disk, Boot: boot, Admitted: true}})
	w.mu.Unlock()
	if w.coord != nil {
		w.coord.ViewChanged()
	}
}

// join adds a node.
func (w *world) join(id base.NodeID) *fakeNode {
	r := base.Replica{Node: id, Disk: base.DiskID{id[1]}}
	n := newFakeNode(r)
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	w.see(id, r.Disk, 1)
	return n
}

// restart lets a node start again: it holds what it held, and leads nothing of it.
func (w *world) restart(id base.NodeID, boot uint64) {
	n := w.nodeOf(id)
	n.mu.Lock()
	n.boot = boot
	for seg, a := range n.held {
		if a.State == base.StateActive {
			n.previous[seg] = max(a.Base, n.previous[seg])
			delete(n.held, seg)
		}
	}
	n.mu.Unlock()
	w.see(id, n.replica.Disk, boot)
}

func (w *world) nodeOf(id base.NodeID) *fakeNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[id]
}

func (w *world) newCoord() *Coord {
	return New(Options{
		Shards: w, Nodes: w, View: func() topology.View {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.connected()
		},
		Contacts: func() map[base.NodeID]Contact {
			w.mu.Lock()
			defer w.mu.Unlock()
			return maps.Clone(w.contacts)
		},
	})
}

// connected is the view without those that this node is not connected with.
func (w *world) connected() topology.View {
	view := w.view
	view.Nodes = slices.Clone(view.Nodes)
	for i := range view.Nodes {
		n := &view.Nodes[i]
		if c := w.contacts[n.ID]; c.Kept && (!c.heard() || c.Boot > n.Boot) && n.Liveness == topology.Alive {
			view.Nodes[i].Liveness = topology.Suspect
		}
	}
	return view
}

// touch makes this node's connection say something of another node.
func (w *world) touch(id base.NodeID, c Contact) {
	w.mu.Lock()
	w.contacts[id] = c
	w.mu.Unlock()
	w.coord.ViewChanged()
}

// kill ends a node's process: its port is closed.
func (w *world) kill(id base.NodeID) *fakeNode {
	w.mu.Lock()
	n := w.nodes[id]
	delete(w.nodes, id)
	w.mu.Unlock()
	w.touch(id, Contact{Kept: true, Refused: true, Silent: time.Millisecond})
	return n
}

// hang stops a node's process: nobody hears it any more.
func (w *world) hang(id base.NodeID) {
	n := w.nodeOf(id)
	n.mu.Lock()
	n.hung = true
	n.mu.Unlock()
	w.mu.Lock()
	w.deaf[id] = true
	w.mu.Unlock()
	time.Sleep(500 * time.Millisecond) // in which it is noticed
	w.touch(id, Contact{Kept: true, Silent: 500 * time.Millisecond})
}

func (w *world) Propose(_ context.Context, shard base.ShardID, cmd meta.Command) (meta.Result, error) {
	time.Sleep(time.Millisecond) // the disk
	w.mu.Lock()
	if w.refuse != nil {
		defer w.mu.Unlock()
		return meta.Result{}, w.refuse
	}
	w.index++
	w.log = append(w.log, cmd)
	if cmd.TimeMs == 0 {
		cmd.TimeMs = time.Now().UnixMilli()
	}
	r, events := w.state.Apply(w.index, cmd)
	var err error
	if w.index%97 == 0 { // it looks at everything
		err = w.state.Check()
	}
	w.mu.Unlock()
	require.NoError(w.t, err)
	if len(events) > 0 {
		w.coord.Applied(shard, events)
	}
	return r, nil
}

func (w *world) ViewStale(_ base.ShardID, fn func(*meta.State) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views++
	if w.refuse != nil {
		return w.refuse
	}
	return fn(w.state)
}

func (w *world) Tell(ctx context.Context, to base.Replica, orders meta.Orders) ([]meta.Confirmation, error) {
	n := w.nodeOf(to.Node)
	switch {
	case n == nil:
		return nil, base.Errorf(base.CodeUnreachable, "tell", "node %s is not there", to.Node)
	case n.replica != to:
		return nil, base.Errorf(base.CodeNotReplica, "tell", "node %s has another disk", to.Node)
	}
	n.mu.Lock()
	slow := n.slow
	if n.hung {
		slow = time.Hour
	}
	n.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tells++
	n.orders += orders.Len()
	n.largest = max(n.largest, orders.Len())
	if n.fail != nil {
		return nil, n.fail
	}
	var answers []meta.Confirmation
	for _, a := range orders.Assignments {
		answers = append(answers, n.assign(a))
	}
	for _, t := range orders.Trims {
		n.trims[t.Ref] = t.Earliest
		answers = append(answers, meta.Confirmation{Kind: meta.ConfirmTrim, Status: meta.StatusHeld, Ref: t.Ref, Version: t.Version, Offset: t.Earliest})
	}
	for _, r := range orders.Rolls {
		n.asked = append(n.asked, r)
		if n.obeys {
			w.obey(r, max(n.ends[r.Segment], n.held[r.Segment].Base))
		}
		answers = append(answers, meta.Confirmation{Kind: meta.ConfirmRoll, Status: meta.StatusHeld, Ref: r.Ref, Segment: r.Segment})
	}
	for _, id := range orders.Deletes {
		n.deleted[id] = true
		answers = append(answers, meta.Confirmation{Kind: meta.ConfirmDelete, Status: meta.StatusHeld, Ref: base.RangeRef{Topic: id}})
	}
	return answers, nil
}

// orderedRolls is what its coordinator has asked it to end.
func (n *fakeNode) orderedRolls() []meta.RollOrder {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

// obey drains a segment and asks for its successor, like its leader.
func (w *world) obey(r meta.RollOrder, end int64) {
	go func() {
		time.Sleep(5 * time.Millisecond)
		_, _ = w.coord.RequestRoll(context.Background(), RollRequest{
			Ref: r.Ref, Segment: r.Segment, Epoch: r.Epoch, End: end, Cause: r.Cause, FrozenMs: time.Now().Add(-5 * time.Millisecond).UnixMilli(),
		})
	}()
}

func (n *fakeNode) assign(a meta.Assignment) meta.Confirmation {
	c := meta.Confirmation{Kind: meta.ConfirmSegment, Status: meta.StatusHeld, Ref: a.Ref, Segment: a.Segment, Version: a.Version}
	if n.refuse[a.Segment] {
		c.Status, c.Message = meta.StatusFailed, "not now"
		return c
	}
	if n.lost[a.Segment] {
		c.Status = meta.StatusStateless
		return c
	}
	if end, ok := n.previous[a.Segment]; ok && a.State == base.StateActive {
		c.Status, c.Empty = meta.StatusFenced, end == a.Base
		return c
	}
	if _, ok := n.held[a.Segment]; n.leaving && !ok && a.State == base.StateActive {
		c.Status, c.Empty = meta.StatusFenced, true
		return c
	}
	if old, ok := n.held[a.Segment]; !ok || old.Version <= a.Version {
		n.held[a.Segment] = a
	}
	return c
}

func (w *world) Fence(ctx context.Context, to base.Replica, requests []meta.FenceRequest) ([]meta.FenceAnswer, error) {
	n := w.nodeOf(to.Node)
	if n == nil {
		return nil, base.Errorf(base.CodeUnreachable, "fence", "node %s is not there", to.Node)
	}
	n.mu.Lock()
	n.fences++
	hung := n.hung
	n.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(2 * time.Millisecond) // its disk
	n.mu.Lock()
	defer n.mu.Unlock()
	var answers []meta.FenceAnswer
	for _, r := range requests {
		end, ok := n.previous[r.Segment]
		if !ok {
			end = max(r.Base, n.ends[r.Segment])
		}
		n.fenced[r.Segment] = true
		kind := meta.Extent
		switch {
		case n.replica != to:
			kind = meta.NotMine
		case n.damaged[r.Segment]:
			kind = meta.Damaged
		}
		answers = append(answers, meta.FenceAnswer{
			Segment: r.Segment, Replica: n.replica, Kind: kind, End: end, Bytes: 10 * end, LastAppendMs: 1, Unlisted: n.lost[r.Segment],
			Unbroken: r.Boot != 0 && r.Boot == n.boot,
		})
	}
	return answers, nil
}

// Silence is coord.Nodes.
func (w *world) Silence(_ context.Context, witness, of base.NodeID) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[witness] == nil {
		return 0, base.Errorf(base.CodeUnreachable, "ask", "node %s is not there", witness)
	}
	w.questions++
	if w.deaf[of] {
		return time.Minute, nil
	}
	return 0, nil
}

// Inventory gives out one range a page.
func (w *world) Inventory(_ context.Context, node base.NodeID, from base.RangeRef, _ int) (meta.Inventory, error) {
	n := w.nodeOf(node)
	if n == nil {
		return meta.Inventory{}, base.Errorf(base.CodeUnreachable, "count", "node %s is not there", node)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts++
	page := meta.Inventory{Disk: n.replica.Disk, Lossy: n.lossy}
	for i, h := range n.stock {
		if h.Ref == from || from == (base.RangeRef{}) {
			page.Ranges = []meta.Held{h}
			if i+1 < len(n.stock) {
				page.Next, page.More = n.stock[i+1].Ref, true
			}
			break
		}
	}
	return page, nil
}

func (w *world) lead() { w.coord.Lead(base.RootShard, true) }

// create makes a topic.
func (w *world) create(name string, config base.TopicConfig, ranges int) *meta.Topic {
	w.made++
	cmd, _, err := planner.CreateTopic(planner.TopicRequest{
		ID: base.TopicID{1, byte(w.made >> 8), byte(w.made)}, Name: name, Config: config, Spans: keyspace.Tile(ranges),
	}, w.view, newRand(), time.Now().UnixMilli())
	require.NoError(w.t, err)
	r, err := w.Propose(context.Background(), base.RootShard, cmd)
	require.NoError(w.t, err)
	require.NoError(w.t, r.Err("create topic"))
	return r.Topic
}

// place makes a topic of one range on the given nodes, leader first.
func (w *world) place(name string, config base.TopicConfig, on ...base.NodeID) *meta.Topic {
	w.made++
	var replicas []base.Replica
	var boots []uint64
	for _, id := range on {
		n := w.nodeOf(id)
		replicas, boots = append(replicas, n.replica), append(boots, n.boot)
	}
	if config.ReplicationFactor == 0 {
		config.ReplicationFactor = len(on)
	}
	r, err := w.Propose(context.Background(), base.RootShard, meta.Command{CreateTopic: &meta.CreateTopic{
		ID: base.TopicID{2, byte(w.made >> 8), byte(w.made)}, Name: name, Config: config, Spans: keyspace.Tile(1),
		Replicas: [][]base.Replica{replicas}, Boots: [][]uint64{boots},
	}})
	require.NoError(w.t, err)
	require.NoError(w.t, r.Err("create topic"))
	return r.Topic
}

func (w *world) topic(name string) *meta.Topic {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.TopicByName(name)
}

// holds is the node's idea of a segment.
func (w *world) holds(id base.SegmentID) (meta.Assignment, bool) {
	w.node.mu.Lock()
	defer w.node.mu.Unlock()
	a, ok := w.node.held[id]
	return a, ok
}

func (w *world) rollRequest(t *meta.Topic, end int64) RollRequest {
	active := w.topic(t.Name).Ranges[0].Active()
	return RollRequest{
		Ref: base.RangeRef{Topic: t.ID, Range: 1}, Segment: active.ID, Epoch: active.Epoch, End: end, Cause: base.CauseAge,
		Bytes: 100, LastAppendMs: time.Now().UnixMilli(),
	}
}

func (w *world) commands(pick func(*meta.Command) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for i := range w.log {
		if pick(&w.log[i]) {
			n++
		}
	}
	return n
}

func topicName(i int) string { return fmt.Sprintf("topic-%05d", i) }
