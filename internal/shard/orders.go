package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// nudgeAfter is how long a change may take to commit before an entry is put behind it. raft 1.8.0 hands the entry that
// makes a voter to its followers before it counts the voter in (appendConfigurationEntry): an answer that comes in between
// is not counted, and the voter has nothing for its leader until it answers for a later entry. With one more voter away the
// change, and every later one, would wait for the next command.
const nudgeAfter = 250 * time.Millisecond

// change makes a function that changes a group's configuration, waits until that is committed, and says so.
func (r *reconciler) change(g *group, what string, ask func() raft.IndexFuture, then func(index uint64), attrs ...any) func(context.Context) {
	return func(ctx context.Context) {
		nudging, done := context.WithCancel(ctx)
		var nudge sync.WaitGroup
		nudge.Go(func() {
			select {
			case <-time.After(nudgeAfter):
				_ = g.barrier(nudging) // whether the change has come about is what counts
			case <-nudging.Done():
			}
		})
		var future raft.IndexFuture
		err := g.wait(ctx, func() raft.Future {
			future = ask()
			return future
		})
		done()
		nudge.Wait()
		r.report(g, what, err, attrs...)
		if err == nil {
			if then != nil {
				then(future.Index())
			}
			r.mark()
		}
	}
}

func (r *reconciler) report(g *group, what string, err error, attrs ...any) {
	attrs = append([]any{"shard", g.id.String(), "step", what}, attrs...)
	if err == nil {
		r.host.o.Logger.Debug("shard members changed", attrs...)
		return
	}
	r.host.o.Logger.Warn("shard members not changed", append(attrs, "error", err)...)
}

// tell orders a node to host or drop a replica, in a goroutine of its own, unless it was told just now. Orders are
// repeated until what they are for has come about: nobody has to remember the answer.
func (r *reconciler) tell(ctx context.Context, g *group, o order, index uint64) {
	h := r.host
	if h.o.Peers == nil || !r.due(o) {
		return
	}
	r.loop.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, orderTimeout)
		defer cancel()
		err := h.order(ctx, o.kind, g, o.node, o.server, index)
		if o.kind == kindHost && err == nil {
			g.seated.ordered(o.server, index)
		}
		if o.kind == kindDrop && (err == nil || errors.Is(err, base.CodeShardNotFound) || errors.Is(err, base.CodePreconditionFailed)) {
			r.dropDone(o)
		}
		if err != nil {
			h.o.Logger.Debug("order about a replica not confirmed", "shard", o.shard.String(), "node", o.node, "error", err)
		}
		r.told(o, err)
	})
}

// due notes that an order is under way, and reports false if one is, or was just now.
func (r *reconciler) due(o order) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for old, next := range r.orders { // those whose time has come say nothing any more
		if now.After(next) {
			delete(r.orders, old)
		}
	}
	if _, early := r.orders[o]; early {
		return false
	}
	r.orders[o] = now.Add(orderTimeout + orderPause)
	return true
}

func (r *reconciler) told(o order, err error) {
	wait := orderPause
	if err == nil {
		wait = 10 * orderPause // it is confirmed; asked again only should that not have been the end of it
	}
	r.mu.Lock()
	r.orders[o] = time.Now().Add(wait)
	r.mu.Unlock()
	if err == nil {
		r.mark()
	}
}

// dropped notes that a server has no seat any more since the configuration of index. Its node is told until it
// confirms, or until this node forgets: then it finds out when nobody speaks to it.
func (r *reconciler) dropped(o order, index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.drops) < dropsAtOnce {
		r.drops[o] = index
	}
}

func (r *reconciler) dropDone(o order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.drops, o)
}

// tellDrops repeats the orders to give replicas up. Only who leads a shard may say so; it reports whether any are left.
func (r *reconciler) tellDrops(ctx context.Context) bool {
	r.mu.Lock()
	pending := make(map[order]uint64, len(r.drops))
	for o, index := range r.drops {
		pending[o] = index
	}
	r.mu.Unlock()
	for o, index := range pending {
		g, err := r.host.group(o.shard)
		if err != nil || g.readyTerm.Load() == 0 {
			r.dropDone(o)
			continue
		}
		if server, listed := r.host.o.ServerOf(o.node); listed && server != o.server {
			r.dropDone(o) // the node has another meta directory: nothing is left of the replica
			continue
		}
		r.tell(ctx, g, o, index)
	}
	return len(pending) > 0
}
