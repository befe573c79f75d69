package coord

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

// Shards is where commands go and committed state comes from: *shard.Host.
//
// What a coordinator reads may be old, for nothing it does rests on its being new: whatever it reads was committed,
// orders carry versions, and a command that names what is not active any more changes nothing. So its reads cost no
// round of messages.
type Shards interface {
	Propose(ctx context.Context, shard base.ShardID, cmd meta.Command) (meta.Result, error)
	ViewStale(shard base.ShardID, fn func(*meta.State) error) error
}

// Nodes carries orders to nodes, this one included, and their answers back: to dataplane.Plane, or over the network.
// Tell and Fence may return fewer answers than were asked for; the rest is asked again. Orders are for one disk of a
// node: where the node has another one, Tell fails with CodeNotReplica, which means that the named disk is no more, and
// Fence answers meta.NotMine.
type Nodes interface {
	Tell(ctx context.Context, to base.Replica, orders meta.Orders) ([]meta.Confirmation, error)
	Fence(ctx context.Context, to base.Replica, requests []meta.FenceRequest) ([]meta.FenceAnswer, error)
	Inventory(ctx context.Context, node base.NodeID, from base.RangeRef, limit int) (meta.Inventory, error)

	// Silence asks a node how long it has not heard another one; 0 while it hears it, or has never tried to.
	Silence(ctx context.Context, witness, of base.NodeID) (time.Duration, error)
}

// Options say whom a Coord works with. Zero values get the defaults named here.
type Options struct {
	Shards Shards
	Nodes  Nodes
	View   func() topology.View // what is known of the nodes now, and may be placed on
	Limits meta.Limits          // the brokers' defaults for segments: 1 GiB, 1 h
	Logger *slog.Logger

	// Contacts is what this node's own connections say of other nodes; nil: there are none.
	Contacts func() map[base.NodeID]Contact

	TellTimeout    time.Duration // for one message of orders: 5 s
	FenceTimeout   time.Duration // how long a recovery waits for replicas: 200 ms
	ProposeTimeout time.Duration // 10 s
	IdlePerSecond  int           // recoveries that nobody waits for, of all shards led here: 200
	WishPerSecond  int           // segments whose leaders are asked to end them, for the sake of their replicas: 20 a shard
}

func (o *Options) ensureDefaults() {
	o.Limits.SegmentBytes = cmp.Or(o.Limits.SegmentBytes, 1<<30)
	o.Limits.SegmentAgeMs = cmp.Or(o.Limits.SegmentAgeMs, time.Hour.Milliseconds())
	o.TellTimeout = cmp.Or(o.TellTimeout, 5*time.Second)
	o.FenceTimeout = cmp.Or(o.FenceTimeout, 200*time.Millisecond)
	o.ProposeTimeout = cmp.Or(o.ProposeTimeout, 10*time.Second)
	o.IdlePerSecond = cmp.Or(o.IdlePerSecond, 200)
	o.WishPerSecond = cmp.Or(o.WishPerSecond, 20)
	if o.Contacts == nil {
		o.Contacts = func() map[base.NodeID]Contact { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Coord is this node's coordinators.
type Coord struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	silence silence
	hearsay hearsay
	idle    *idlePace

	mu     sync.Mutex
	closed bool
	loops  map[base.ShardID]*loop
	homes  map[base.TopicID]base.ShardID // of the topics of led shards
	census census
}

// New makes a Coord that leads nothing yet.
func New(o Options) *Coord {
	o.ensureDefaults()
	c := &Coord{o: o, loops: make(map[base.ShardID]*loop), homes: make(map[base.TopicID]base.ShardID)}
	c.idle = newIdlePace(o.IdlePerSecond)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

var (
	errClosing = base.Errorf(base.CodeShuttingDown, "coordinate", "the node is stopping")
	errDeposed = base.Errorf(base.CodeNotLeader, "coordinate", "the shard's leadership is lost")
)

// Close ends all loops and waits for them. It may be called twice.
func (c *Coord) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(errClosing)
	c.running.Wait()
	return nil
}

// Lead is shard.Options.OnLead: a loop begins when the shard serves, and ends with the leadership. It does not block.
func (c *Coord) Lead(shard base.ShardID, leading bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.loops[shard]; old != nil {
		old.cancel(errDeposed)
		delete(c.loops, shard)
		for id, home := range c.homes {
			if home == shard {
				delete(c.homes, id)
			}
		}
	}
	if !leading || c.closed {
		return
	}
	l := newLoop(c, shard)
	c.loops[shard] = l
	c.running.Go(l.run)
}

// Applied is shard.Options.OnApply. It notes what changed for the loop and does not block.
func (c *Coord) Applied(shard base.ShardID, events []meta.Event) {
	c.mu.Lock()
	l := c.loops[shard]
	if l != nil {
		for i := range events {
			switch e := &events[i]; e.Type {
			case meta.EventTopicCreated:
				c.homes[e.Topic] = shard
			case meta.EventTopicDeleted:
				delete(c.homes, e.Topic)
			}
		}
	}
	c.mu.Unlock()
	if l != nil {
		l.inbox.note(events)
	}
}

// ViewChanged says that what is known of the nodes may have changed: one has come back, perhaps after a restart, and is
// to be told again what it holds. It does not block.
func (c *Coord) ViewChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.loops {
		l.inbox.deliver(func(in *letters) { in.nodes = true })
	}
}

// adopt records the topics that a new loop found in its shard.
func (c *Coord) adopt(l *loop, topics []base.TopicID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loops[l.shard] != l {
		return
	}
	for _, id := range topics {
		c.homes[id] = l.shard
	}
}

// RollRequest is a leader's wish to end its segment. An End below 0 means that the node held the segment before it
// last started, so that its end is to be found by fencing the replicas.
type RollRequest = planner.RollRequest

// RequestRoll seals a segment and returns the range's active one as committed: its base is the committed end. Asking
// again is safe; whoever lost a race gets what won. Errors are retryable but for CodeTopicNotFound.
func (c *Coord) RequestRoll(ctx context.Context, req RollRequest) (meta.Assignment, error) {
	c.mu.Lock()
	l := c.loops[c.homes[req.Ref.Topic]]
	if _, known := c.homes[req.Ref.Topic]; !known {
		l = nil
	}
	leading := len(c.loops)
	c.mu.Unlock()
	if l == nil {
		return meta.Assignment{}, base.Errorf(base.CodeNoLeader, "roll segment", "none of the %d shards led here has topic %s", leading, req.Ref.Topic)
	}
	return l.inbox.ask(ctx, &ask{req: req})
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// Status is a moment's figures of one loop.
type Status struct {
	Shard      base.ShardID
	Untold     int // orders that nodes have not confirmed
	Recoveries int // segments that wait for a seal
	Undecided  int // of them those whose end could not be told, so far
	Wishes     int // segments whose leaders will be asked to end them, for the sake of their replicas
	Waiting    int // callers of RequestRoll
	Due        int // topics with a retention date
}

// Status lists the loops of this node.
func (c *Coord) Status() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Status, 0, len(c.loops))
	for _, l := range c.loops {
		list = append(list, l.inbox.status(l.shard))
	}
	return list
}
