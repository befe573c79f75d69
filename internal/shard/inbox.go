package shard

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// What may wait for one group's raft instance. Its main loop takes one request after the other, and stands still while
// the disk works.
const (
	inboxRequests = 64
	inboxBytes    = 16 << 20
)

// inbox is the queue in front of a group's raft instance. It hands over one request at a time and passes the answer on;
// whoever comes when it is full is turned away, and nobody is left without an answer when the group ends. Its goroutine
// lives only while somebody waits.
type inbox struct {
	shard    base.ShardID
	consumer chan raft.RPC // raft takes from here
	voting   atomic.Bool   // it is asked for a vote right now

	mu      sync.Mutex
	waiting []*delivery
	bytes   int
	running bool
	closed  bool
	ctx     context.Context
	cancel  context.CancelFunc
	pump    sync.WaitGroup
}

// delivery is one request on its way to raft. done is called once.
type delivery struct {
	rpc  raft.RPC
	size int
	done func(answer any, err error)
}

func newInbox(shard base.ShardID) *inbox {
	ctx, cancel := context.WithCancel(context.Background())
	return &inbox{shard: shard, consumer: make(chan raft.RPC), ctx: ctx, cancel: cancel}
}

// put queues a request, or answers it at once. It never blocks.
func (b *inbox) put(d *delivery) {
	b.mu.Lock()
	full := len(b.waiting) >= inboxRequests || len(b.waiting) > 0 && b.bytes+d.size > inboxBytes
	closed := b.closed
	if !full && !closed {
		b.waiting = append(b.waiting, d)
		b.bytes += d.size
		if !b.running {
			b.running = true
			b.pump.Go(b.run)
		}
	}
	b.mu.Unlock()
	switch {
	case closed:
		d.done(nil, b.stopping())
	case full:
		d.done(nil, base.Errorf(base.CodeBusy, "ask replica", "%d requests of shard %s wait", inboxRequests, b.shard))
	}
}

func (b *inbox) run() {
	for d := b.next(); d != nil; d = b.next() {
		_, vote := d.rpc.Command.(*raft.RequestVoteRequest)
		b.voting.Store(vote)
		answer, err := b.ask(context.Background(), d.rpc)
		b.voting.Store(false)
		d.done(answer, err)
	}
}

func (b *inbox) next() *delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.running, b.waiting = false, nil
		return nil
	}
	d := b.waiting[0]
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	b.bytes -= d.size
	return d
}

// ask gives raft a request and waits for its answer.
func (b *inbox) ask(ctx context.Context, rpc raft.RPC) (any, error) {
	answers := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answers
	select {
	case b.consumer <- rpc:
	case <-b.ctx.Done():
		return nil, b.stopping()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-answers:
		return a.Response, a.Error
	case <-b.ctx.Done():
		return nil, b.stopping()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *inbox) stopping() error {
	return base.Errorf(base.CodeShuttingDown, "ask replica", "shard %s is stopping on this node", b.shard)
}

// close answers everybody who waits. It may be called twice.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.pump.Wait()
}
