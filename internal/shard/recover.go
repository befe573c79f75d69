package shard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
)

// The kinds of messages of a recovery.
const (
	kindReport  = peer.Control + 19 // which logs of a shard are on a node
	kindRebuild = peer.Control + 20 // make a shard anew of one of them
)

const (
	reportPatience  = 3 * time.Second       // for a node to say what it has
	reportPause     = 20 * time.Millisecond // before one that has too much to do is asked again
	rebuildPatience = 30 * time.Second
	reportsAtOnce   = 32
)

// LogReport is the end of one replica's log, wherever it was found.
type LogReport struct {
	Node       base.NodeID `cbor:"1,keyasint"`
	Server     base.UUID   `cbor:"2,keyasint"`
	Generation uint64      `cbor:"3,keyasint,omitempty"`
	Term       uint64      `cbor:"4,keyasint,omitempty"` // of the last entry
	Index      uint64      `cbor:"5,keyasint,omitempty"`
	Voters     []base.UUID `cbor:"6,keyasint,omitempty"` // by its latest configuration
	Archived   bool        `cbor:"7,keyasint,omitempty"` // set aside, since the shard was rebuilt without it
	Leads      bool        `cbor:"8,keyasint,omitempty"`
	Chosen     bool        `cbor:"-"`
}

// Recovery is what a shard was rebuilt from, or would be.
type Recovery struct {
	Shard      base.ShardID
	Logs       []LogReport // newest first
	Lost       []base.UUID // voters of which no log was found
	Generation uint64      // the new one
	Done       bool
}

type reportRequest struct {
	Cluster base.ClusterID `cbor:"1,keyasint"`
	Shard   base.ShardID   `cbor:"2,keyasint"`
}

type reportAnswer struct {
	Logs  []LogReport `cbor:"1,keyasint,omitempty"`
	Heard uint64      `cbor:"2,keyasint,omitempty"` // the highest generation that the node knows of
}

// rebuildOrder tells a node to make a shard anew of the log it reported.
type rebuildOrder struct {
	Order hostMessage `cbor:"1,keyasint"` // with the new generation
	From  LogReport   `cbor:"2,keyasint"`
	Lost  []base.UUID `cbor:"3,keyasint,omitempty"`
}

// Recover rebuilds a shard that lost its quorum for good: from the newest log among all named voters that answer, whose
// node becomes its only voter, under a new generation. What only the lost voters had committed is gone; that this was
// accepted is recorded in the shard for ever. Replicas of the generation before set themselves aside when they hear of
// the new one. With dryRun it only says what was found, and what would be taken.
//
// Any node can do this. It refuses while the shard has a leader, or could have one.
func (h *Host) Recover(ctx context.Context, shard base.ShardID, dryRun bool) (Recovery, error) {
	const op = "recover shard"
	if !h.exists(shard) {
		return Recovery{}, base.Errorf(base.CodeShardNotFound, op, "there is no shard %s", shard)
	}
	logs, heard := h.gatherLogs(ctx, shard)
	rec, chosen, err := chooseLog(shard, logs, heard)
	if err != nil || dryRun {
		return rec, err
	}
	m := h.current()
	order := rebuildOrder{
		Order: hostMessage{Cluster: m.Cluster, Shards: m.Shards, Shard: shard, Server: chosen.Server, Generation: rec.Generation},
		From:  chosen, Lost: rec.Lost,
	}
	h.o.Logger.Warn("shard is being rebuilt, with a possible loss", "shard", shard.String(), "generation", rec.Generation,
		"from", chosen.Node, "term", chosen.Term, "index", chosen.Index, "voters_lost", len(rec.Lost))
	ctx, cancel := context.WithTimeoutCause(ctx, rebuildPatience, base.Errorf(base.CodeTimeout, op, "node %s has not rebuilt the shard within %s", chosen.Node, rebuildPatience))
	defer cancel()
	if chosen.Node == h.o.Node {
		err = h.rebuild(ctx, order)
	} else {
		_, err = h.o.Peers.CallGroup(ctx, chosen.Node, kindRebuild, groupNumber(shard), encode(&order))
	}
	if err != nil {
		return rec, base.Wrap(base.CodeInternal, op, err)
	}
	rec.Done = true
	return rec, nil
}

func (h *Host) exists(shard base.ShardID) bool {
	return shard.PathLen == 0 && int(shard.Root) < h.Shards()
}

// gatherLogs asks every node that this one knows of, itself among them.
func (h *Host) gatherLogs(ctx context.Context, shard base.ShardID) (logs []LogReport, heard uint64) {
	own := h.reportLogs(shard)
	logs, heard = own.Logs, own.Heard
	if h.o.Peers == nil {
		return logs, heard
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	request := encode(&reportRequest{Cluster: h.Cluster(), Shard: shard})
	var mu sync.Mutex
	var asking sync.WaitGroup
	limit := make(chan struct{}, reportsAtOnce)
	for _, node := range h.everybody(shard) {
		limit <- struct{}{}
		asking.Go(func() {
			defer func() { <-limit }()
			a, err := h.askForLogs(ctx, node, shard, request)
			if err != nil {
				h.o.Logger.Debug("node did not say which logs it has", "shard", shard.String(), "node", node, "error", err)
				return
			}
			for i := range a.Logs {
				a.Logs[i].Node = node
			}
			mu.Lock()
			defer mu.Unlock()
			logs, heard = append(logs, a.Logs...), max(heard, a.Heard)
		})
	}
	asking.Wait()
	return logs, heard
}

// askForLogs asks one node. One that has too much to do is asked until it answers: its log counts.
func (h *Host) askForLogs(ctx context.Context, node base.NodeID, shard base.ShardID, request []byte) (a reportAnswer, err error) {
	for {
		b, err := h.o.Peers.CallGroup(ctx, node, kindReport, groupNumber(shard), request)
		if err == nil {
			err = decode(b, &a)
			return a, err
		}
		if !errors.Is(err, base.CodeBusy) || !task.Pause(ctx, reportPause) {
			return a, err
		}
	}
}

// everybody are the other nodes that could have a replica: those known, whatever is believed of them, and those that
// the replica here names.
func (h *Host) everybody(shard base.ShardID) []base.NodeID {
	nodes := h.Voters(shard)
	for _, n := range h.o.View().Nodes {
		nodes = append(nodes, n.ID)
	}
	for _, m := range h.o.Ring().Members() {
		nodes = append(nodes, m.Node)
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(n base.NodeID) bool { return n == h.o.Node })
}

// chooseLog takes the newest log of a voter: the highest generation, in it the highest term, in that the highest index.
// The new generation is above every one that anybody has heard of.
func chooseLog(shard base.ShardID, logs []LogReport, heard uint64) (Recovery, LogReport, error) {
	const op = "recover shard"
	slices.SortStableFunc(logs, func(a, b LogReport) int {
		return cmp.Or(
			cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index),
			base.CompareBools(a.Archived, b.Archived), cmp.Compare(a.Node, b.Node),
		)
	})
	rec := Recovery{Shard: shard, Logs: logs}
	i := slices.IndexFunc(logs, func(l LogReport) bool { return l.Index > 0 && slices.Contains(l.Voters, l.Server) })
	if i < 0 {
		return rec, LogReport{}, base.Errorf(base.CodePreconditionFailed, op, "no node that answers has a log of a voter of shard %s", shard).
			WithHint("start the nodes that had one; with none of their meta directories left, the shard's topics are lost")
	}
	logs[i].Chosen = true
	chosen := logs[i]
	rec.Generation = max(logs[0].Generation, heard) + 1
	answering := 0
	for _, voter := range chosen.Voters {
		has := slices.IndexFunc(logs, func(l LogReport) bool { return l.Server == voter })
		switch {
		case has < 0:
			rec.Lost = append(rec.Lost, voter)
		case !logs[has].Archived && logs[has].Generation == chosen.Generation:
			answering++
		}
	}
	for _, l := range logs {
		if l.Leads && l.Generation == chosen.Generation {
			return rec, chosen, base.Errorf(base.CodePreconditionFailed, op, "shard %s has a leader: node %s", shard, l.Node)
		}
	}
	if answering > len(chosen.Voters)/2 {
		return rec, chosen, base.Errorf(base.CodePreconditionFailed, op, "%d of the %d voters of shard %s answer: they elect a leader by themselves", answering, len(chosen.Voters), shard).
			WithHint("wait some seconds; shard describe %s shows who leads", shard)
	}
	return rec, chosen, nil
}

// onReport says which logs of a shard are here.
func (h *Host) onReport(_ context.Context, r *peer.Request) ([]byte, error) {
	var q reportRequest
	if err := decode(r.Body, &q); err != nil {
		return nil, err
	}
	if q.Cluster != h.Cluster() {
		return nil, base.Errorf(base.CodePreconditionFailed, "report logs", "node %s belongs to cluster %s", h.o.Node, h.Cluster())
	}
	return encode(h.reportLogs(q.Shard)), nil
}

// Heard tells the host which generation of a shard somebody claims to lead: an older replica here sets itself aside.
func (h *Host) Heard(shard base.ShardID, generation uint64) {
	if g, err := h.group(shard); err == nil && g.hosted.Generation < generation {
		h.outdated(g, generation)
	}
}

// Generation counts how often a shard was rebuilt after the loss of its quorum, as the replica here knows; 0 also
// without one.
func (h *Host) Generation(shard base.ShardID) uint64 {
	if g, err := h.group(shard); err == nil {
		return g.hosted.Generation
	}
	return 0
}
