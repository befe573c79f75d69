package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/planner"
)

// kindSeat asks the leader of a shard whether a server has a seat in it.
const kindSeat = peer.Control + 21

const (
	orphanAfter = 10 * time.Second // without a leader, before a replica asks whether it still belongs to the shard
	orphanEvery = 5 * time.Second
	seatQueue   = 4
)

// A replica can miss that it was given up: its node was down, and the leader that would have told it is gone. It is an
// orphan then: nobody speaks to it, and the voters it knows have a leader that it does not hear. So whoever hears of no
// leader for a while asks around. Only a leader answers, and only after a barrier: what it says is committed.

type seatQuestion struct {
	Order hostMessage `cbor:"1,keyasint"` // of the asker: its server, shard and generation
}

type seatAnswer struct {
	Listed bool   `cbor:"1,keyasint,omitempty"`
	Index  uint64 `cbor:"2,keyasint,omitempty"` // committed; not listed as of it
	Newer  uint64 `cbor:"3,keyasint,omitempty"` // the shard has been rebuilt
}

// orphans remembers since when replicas here know no leader.
type orphans struct {
	since map[base.ShardID]time.Time
	asked map[base.ShardID]time.Time
}

func newOrphans() orphans {
	return orphans{since: make(map[base.ShardID]time.Time), asked: make(map[base.ShardID]time.Time)}
}

// due are the replicas of which it is time to ask.
func (o *orphans) due(now time.Time, groups []*group) []*group {
	var due []*group
	lonely := make(map[base.ShardID]time.Time)
	for _, g := range groups {
		if !g.up.Load() {
			continue
		}
		if leader, _ := g.leader(); leader != "" {
			continue
		}
		since, known := o.since[g.id]
		if !known {
			since = now
		}
		lonely[g.id] = since
		if now.Sub(since) >= orphanAfter && now.Sub(o.asked[g.id]) >= orphanEvery {
			o.asked[g.id] = now
			due = append(due, g)
		}
	}
	o.since = lonely
	return due
}

// askForSeats asks one node at random about each replica here that has heard of no leader for long.
func (r *reconciler) askForSeats(ctx context.Context) {
	h := r.host
	if h.o.Peers == nil {
		return
	}
	for _, g := range r.orphans.due(time.Now(), h.all()) {
		nodes := append(g.voters(), planner.Intended(h.o.Ring(), g.id, h.o.Voters)...)
		nodes = slices.DeleteFunc(nodes, func(n base.NodeID) bool { return n == h.o.Node })
		if len(nodes) == 0 {
			continue
		}
		node := nodes[rand.IntN(len(nodes))]
		r.loop.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, orderTimeout)
			defer cancel()
			if err := h.askForSeat(ctx, g, node); err != nil {
				h.o.Logger.Debug("not told whether a replica has a seat", "shard", g.id.String(), "node", node, "error", err)
			}
		})
	}
}

func (h *Host) askForSeat(ctx context.Context, g *group, node base.NodeID) error {
	m := h.current()
	b, err := h.o.Peers.CallGroup(ctx, node, kindSeat, groupNumber(g.id), encode(&seatQuestion{Order: hostMessage{
		Cluster: m.Cluster, Shards: m.Shards, Shard: g.id, Server: h.o.Meta, Generation: g.hosted.Generation,
	}}))
	if err != nil {
		return err
	}
	var a seatAnswer
	if err := decode(b, &a); err != nil {
		return err
	}
	switch {
	case a.Newer > g.hosted.Generation:
		h.outdated(g, a.Newer)
	case !a.Listed && a.Index > 0:
		return h.drop(ctx, hosted{Shard: g.id, Generation: g.hosted.Generation, Index: a.Index})
	}
	return nil
}

// onSeat answers for the shards led here.
func (h *Host) onSeat(ctx context.Context, r *peer.Request) ([]byte, error) {
	const op = "ask for seat"
	var q seatQuestion
	if err := decode(r.Body, &q); err != nil {
		return nil, err
	}
	if m := h.current(); q.Order.Cluster != m.Cluster || q.Order.Shards != m.Shards {
		return nil, base.Errorf(base.CodePreconditionFailed, op, "node %s belongs to another cluster", h.o.Node)
	}
	g, err := h.group(q.Order.Shard)
	if err != nil {
		return nil, err
	}
	term := g.readyTerm.Load()
	switch {
	case g.hosted.Generation > q.Order.Generation:
		return encode(&seatAnswer{Newer: g.hosted.Generation}), nil
	case term == 0 || g.hosted.Generation < q.Order.Generation: // nor does it run, perhaps
		return nil, g.notLeader(op)
	}
	// Read before the configuration: a seat that is given from here on lies behind it, and the answer does not take it.
	last := g.raft.LastIndex()
	if g.lists(raft.ServerID(q.Order.Server.String())) {
		return encode(&seatAnswer{Listed: true}), nil
	}
	// The configuration that was just read may not be committed yet. Behind the barrier it is, if this replica leads.
	if err := g.barrier(ctx); err != nil || g.readyTerm.Load() != term {
		return nil, g.notLeader(op)
	}
	return encode(&seatAnswer{Index: last}), nil
}
