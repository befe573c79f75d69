package sdk

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/wire"
)

// fakeCluster is brokers that share one memory: what a real cluster would replicate. Each has an address of its
// own on an in-memory network, so that the tests can run in virtual time.
type fakeCluster struct {
	goesOn  func(b *fakeBroker, q wire.FetchRange) bool // the broker's segment ends there, and the next is elsewhere
	located int
	t       testing.TB
	net     *fakeNet

	mu      sync.Mutex
	changed *sync.Cond // a log grew, a range was sealed, or the cluster closed
	topics  map[string]*fakeTopic
	brokers map[base.NodeID]*fakeBroker
	closed  bool
	opened  map[string]int16 // producer name -> epoch
	nextSeg base.SegmentID

	// script may answer a produce in the broker's place, or spoil its answer. n counts the produces of all brokers.
	script  func(n int, p *fakeProduce) verdict
	produce int

	maxRecord, maxBatch int64
	mute                wire.Kind            // requests of this kind get no answer
	frozen              map[base.NodeID]bool // these are stopped as by SIGSTOP: no answer, no handshake
	racks               map[base.NodeID]string
	cutOff              map[base.NodeID]wire.TopicRoute          // what brokers that are cut off from the others still believe
	garble              func(b *fakeBroker, batch []byte) []byte // what a broker sends in place of a batch
	asked               map[wire.Kind][]base.NodeID              // who was asked, kind by kind, in order

	// spoil may answer a fetch of one range with an error in the broker's place.
	spoil func(b *fakeBroker, q wire.FetchRange) base.Code
}

type fakeTopic struct {
	id      base.TopicID
	name    string
	version base.Version
	config  base.TopicConfig
	ranges  []*fakeRange
}

type fakeRange struct {
	route     wire.RangeRoute
	leader    base.NodeID
	batches   [][]byte
	heads     []header.Header
	end       int64
	earliest  int64
	producers map[int64]*fakeProducerState
	epoch     base.Epoch
	sealed    []wire.SegmentRoute   // before the active one
	known     map[base.NodeID]int64 // the commit that a follower can prove, where that is less than the leader's
}

type fakeBroker struct {
	c    *fakeCluster
	node base.NodeID
	addr string
	srv  *mux.Server
	lis  net.Listener
}

func newFakeCluster(t testing.TB, nodes ...base.NodeID) *fakeCluster {
	c := &fakeCluster{
		t: t, net: &fakeNet{listeners: make(map[string]*fakeListener)}, topics: make(map[string]*fakeTopic),
		brokers: make(map[base.NodeID]*fakeBroker), opened: make(map[string]int16), nextSeg: 1,
		frozen: make(map[base.NodeID]bool), asked: make(map[wire.Kind][]base.NodeID),
		maxRecord: 1 << 20, maxBatch: 4 << 20,
	}
	c.changed = sync.NewCond(&c.mu)
	if len(nodes) == 0 {
		nodes = []base.NodeID{"n1"}
	}
	for _, n := range nodes {
		c.start(n)
	}
	return c
}

// start begins a broker, or begins it anew at the same address.
func (c *fakeCluster) start(n base.NodeID) {
	b := &fakeBroker{c: c, node: n, addr: string(n) + ":2921"}
	b.srv = mux.NewServer(mux.ServerOptions{Handler: b, Hello: b.hello})
	b.lis = c.net.listen(b.addr)
	c.mu.Lock()
	c.brokers[n] = b
	c.mu.Unlock()
	go func() { _ = b.srv.Serve(b.lis) }()
}

// stop ends a broker; its connections break.
func (c *fakeCluster) stop(n base.NodeID) {
	c.mu.Lock()
	b := c.brokers[n]
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = b.srv.Close()
	_ = b.lis.Close()
}

func (c *fakeCluster) close() {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	var all []*fakeBroker
	for _, b := range c.brokers {
		all = append(all, b)
	}
	c.mu.Unlock()
	for _, b := range all {
		_ = b.srv.Close()
		_ = b.lis.Close()
	}
}

// addTopic makes a topic of n ranges, led by the brokers in turn.
func (c *fakeCluster) addTopic(name string, n int) *fakeTopic {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := make([]base.NodeID, 0, len(c.brokers))
	for id := range c.brokers {
		nodes = append(nodes, id)
	}
	slices.Sort(nodes)
	t := &fakeTopic{name: name, id: newRequestID(), version: 1}
	for i, span := range keyspace.Tile(n) {
		t.ranges = append(t.ranges, c.newRange(base.RangeID(i+1), span, nodes[i%len(nodes)]))
	}
	c.topics[name] = t
	return t
}

func (c *fakeCluster) newRange(id base.RangeID, span keyspace.Span, leader base.NodeID) *fakeRange {
	seg := c.nextSeg
	c.nextSeg++
	return &fakeRange{
		leader: leader, epoch: 1, producers: make(map[int64]*fakeProducerState),
		route: wire.RangeRoute{ID: id, Span: span, State: base.StateActive, Active: &wire.SegmentRoute{
			ID: seg, Epoch: 1, State: base.StateActive, Replicas: []base.NodeID{leader},
		}},
	}
}

// move gives a range another leader.
func (c *fakeCluster) move(t *fakeTopic, id base.RangeID, to base.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := t.find(id)
	r.leader = to
	r.epoch++
	active := *r.route.Active
	if active.End = r.end; active.End > active.Base {
		r.sealed = append(r.sealed, active)
		active.Base = r.end
	}
	active.End = 0
	active.Replicas, active.Epoch, active.ID = []base.NodeID{to}, r.epoch, c.nextSeg
	c.nextSeg++
	r.route.Active = &active
	t.version++
}

// roll seals the active segment of a range and opens the next one on other nodes, of which the first leads.
func (c *fakeCluster) roll(t *fakeTopic, id base.RangeID, nodes ...base.NodeID) {
	c.move(t, id, nodes[0])
	c.mu.Lock()
	defer c.mu.Unlock()
	r := t.find(id)
	r.route.Active.Base, r.route.Active.Replicas = r.end, nodes
	c.changed.Broadcast()
}

// split seals a range and opens its two halves.
func (c *fakeCluster) split(t *fakeTopic, id base.RangeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parent := t.find(id)
	left, right, _ := parent.route.Span.Halves()
	for _, span := range []keyspace.Span{left, right} {
		child := c.newRange(base.RangeID(len(t.ranges)+1), span, parent.leader)
		child.route.Parents = []base.RangeID{id}
		for pid, s := range parent.producers {
			child.producers[pid] = &fakeProducerState{epoch: s.epoch}
		}
		parent.route.Children = append(parent.route.Children, child.route.ID)
		t.ranges = append(t.ranges, child)
	}
	parent.route.State, parent.route.End, parent.route.Active = base.StateSealed, parent.end, nil
	t.version++
	c.changed.Broadcast()
}

// at is the segment with one offset: the last one for all beyond it.
func (r *fakeRange) at(offset int64) wire.SegmentRoute {
	for _, s := range r.sealed {
		if offset < s.End {
			return s
		}
	}
	if r.route.Active != nil {
		return *r.route.Active
	}
	return wire.SegmentRoute{ID: 1, Replicas: []base.NodeID{r.leader}, End: r.end}
}

func (t *fakeTopic) find(id base.RangeID) *fakeRange {
	for _, r := range t.ranges {
		if r.route.ID == id {
			return r
		}
	}
	return nil
}

// records decodes everything a range holds.
func (c *fakeCluster) records(t *fakeTopic, id base.RangeID) []record.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []record.Record
	for _, b := range t.find(id).batches {
		rd := record.NewReader(64 << 20)
		require.NoError(c.t, rd.Reset(b))
		for {
			r, ok := rd.Next()
			if !ok {
				break
			}
			all = append(all, r)
		}
		require.NoError(c.t, rd.Err())
	}
	return all
}

// cut cuts a broker off from the others: it knows nothing new, and gets nothing onto any replica.
func (c *fakeCluster) cut(n base.NodeID, t *fakeTopic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutOff = map[base.NodeID]wire.TopicRoute{n: c.route(t)}
	c.script = func(_ int, p *fakeProduce) verdict {
		if p.broker.node == n {
			return verdict{forget: true}
		}
		return verdict{}
	}
}

func (b *fakeBroker) hello(wire.HelloRequest) (wire.HelloResponse, error) {
	return wire.HelloResponse{
		Cluster: base.ClusterID{1}, Node: b.node, Version: "fake", MaxRecordBytes: b.c.maxRecord, MaxBatchBytes: b.c.maxBatch, Address: b.addr,
	}, nil
}

// Handle serves one request.
func (b *fakeBroker) Handle(_ context.Context, r *mux.Request) {
	if !b.hears(r.Kind) {
		return
	}
	switch r.Kind {
	case wire.KindPing:
		r.Reply(wire.Encode(wire.PingResponse{}))
	case wire.KindProduce:
		b.produce(r)
	case wire.KindFetch:
		go b.fetch(r)
	default:
		resp, err := b.meta(r)
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(resp))
	}
}

// hears notes who was asked for what, and reports whether there will be an answer.
func (b *fakeBroker) hears(k wire.Kind) bool {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.asked[k] = append(b.c.asked[k], b.node)
	return b.c.mute != k && !b.c.frozen[b.node]
}

// freeze stops a broker as SIGSTOP does, or lets it go on.
func (c *fakeCluster) freeze(n base.NodeID, frozen bool) {
	c.mu.Lock()
	c.frozen[n] = frozen
	c.changed.Broadcast()
	c.mu.Unlock()
	c.net.freeze(string(n)+":2921", frozen)
}

func (b *fakeBroker) meta(r *mux.Request) (any, error) {
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Kind {
	case wire.KindRoute:
		var req wire.RouteRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		t := c.topics[req.Name]
		if t == nil {
			return nil, base.Errorf(base.CodeTopicNotFound, "route", "topic %s does not exist", req.Name)
		}
		if stale, cut := c.cutOff[b.node]; cut {
			return wire.RouteResponse{Topic: stale}, nil
		}
		return wire.RouteResponse{Topic: c.route(t)}, nil
	case wire.KindLocate:
		var req wire.LocateRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		_, rg := c.byRef(req.Ref)
		if rg == nil {
			return nil, base.CodeRangeNotFound
		}
		if req.Offset < rg.earliest {
			return nil, base.Errorf(base.CodeOffsetOutOfRange, "locate", "the range begins at %d", rg.earliest)
		}
		c.located++
		return wire.LocateResponse{Segment: rg.at(req.Offset), Nodes: c.addresses()}, nil
	case wire.KindListOffsets:
		var req wire.ListOffsetsRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		return c.listOffsets(b, req), nil
	case wire.KindOpenProducer:
		var req wire.OpenProducerRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		c.opened[req.Name]++
		return wire.OpenProducerResponse{ProducerID: int64(keyspace.HashKey([]byte(req.Name)) >> 1), Epoch: c.opened[req.Name]}, nil
	case wire.KindProducerState:
		var req wire.ProducerStateRequest
		if err := r.Decode(&req); err != nil {
			return nil, err
		}
		_, rg := c.byRef(req.Ref)
		s := rg.producers[req.ProducerID]
		if s == nil {
			return wire.ProducerStateResponse{Sealed: rg.route.State == base.StateSealed}, nil
		}
		return wire.ProducerStateResponse{Known: true, Epoch: s.epoch, Batches: s.last, Commit: rg.end, Sealed: rg.route.State == base.StateSealed}, nil
	}
	return nil, base.Errorf(base.CodeUnknownKind, "fake", "kind %s is not faked", r.Kind)
}

func (c *fakeCluster) route(t *fakeTopic) wire.TopicRoute {
	tr := wire.TopicRoute{ID: t.id, Name: t.name, Version: t.version, Config: t.config, Nodes: c.addresses()}
	for _, r := range t.ranges {
		rr := r.route
		rr.Earliest = r.earliest
		tr.Ranges = append(tr.Ranges, rr)
	}
	return tr
}

func (c *fakeCluster) addresses() []wire.NodeAddress {
	var all []wire.NodeAddress
	for _, b := range c.brokers {
		all = append(all, wire.NodeAddress{ID: b.node, Address: b.addr, Rack: c.racks[b.node]})
	}
	return all
}

func (c *fakeCluster) byRef(ref base.RangeRef) (*fakeTopic, *fakeRange) {
	for _, t := range c.topics {
		if t.id == ref.Topic {
			return t, t.find(ref.Range)
		}
	}
	return nil, nil
}

func (c *fakeCluster) listOffsets(b *fakeBroker, req wire.ListOffsetsRequest) wire.ListOffsetsResponse {
	var resp wire.ListOffsetsResponse
	for _, q := range req.Queries {
		a := wire.OffsetAnswer{Ref: q.Ref}
		_, rg := c.byRef(q.Ref)
		if rg == nil {
			m := wire.ErrorFrom(base.CodeRangeNotFound)
			a.Error = &m
			resp.Offsets = append(resp.Offsets, a)
			continue
		}
		if rg.leader != b.node && rg.route.State == base.StateActive && q.At == wire.OffsetLatest {
			m := wire.ErrorFrom(base.CodeNotLeader)
			a.Error = &m
			resp.Offsets = append(resp.Offsets, a)
			continue
		}
		a.Earliest, a.Commit, a.Sealed = rg.earliest, rg.end, rg.route.State == base.StateSealed
		switch q.At {
		case wire.OffsetEarliest:
			a.Offset = rg.earliest
		case wire.OffsetLatest:
			a.Offset = rg.end
		case wire.OffsetAtTime:
			a.Offset = rg.end
			for _, h := range rg.heads {
				if h.MaxTimestamp >= q.TimeMs {
					a.Offset, a.TimeMs = h.BaseOffset, h.MaxTimestamp
					break
				}
			}
		}
		resp.Offsets = append(resp.Offsets, a)
	}
	return resp
}

// client makes a client of the cluster that is closed with the test.
func (c *fakeCluster) client(opts ...ClientOption) *Client {
	cl, err := NewClient(append([]ClientOption{WithSeeds("n1:2921"), WithDialer(c.net.dial)}, opts...)...)
	require.NoError(c.t, err)
	return cl
}
