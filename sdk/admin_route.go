package sdk

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/wire"
)

// KeyRoute is where the records with one key of a topic go.
type KeyRoute struct {
	Topic TopicID
	// Version is that of the metadata that this was read from.
	Version uint64
	Hash    uint64
	Range   RangeID
	// Start and End are the range's slice of the hash space; an End of 0 means 2⁶⁴.
	Start, End uint64
	Segment    SegmentID
	Epoch      Epoch
	// Replicas hold the active segment; the leader, which takes writes, comes first.
	Replicas []NodeAddress
	// ReadFrom is the replica that a consumer of this client would read from, as far as it is measured yet.
	ReadFrom NodeID
}

// RouteKey tells where records of a topic with this routing key go: their hash, range, segment, and the nodes that
// hold it. A producer finds its way by the same rule. Errors: CodeTopicNotFound.
func (a *Admin) RouteKey(ctx context.Context, topic string, key []byte) (KeyRoute, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var resp wire.RouteResponse
	if err := a.c.ask(ctx, wire.KindRoute, wire.RouteRequest{Name: topic}, &resp); err != nil {
		return KeyRoute{}, about("find topic "+topic, err)
	}
	a.c.brokers.learn(resp.Topic.Nodes)
	r, err := newRoute(resp.Topic)
	if err != nil {
		return KeyRoute{}, err
	}
	found := KeyRoute{Topic: r.ID, Version: uint64(r.Version), Hash: keyspace.HashKey(key)}
	for _, rr := range r.active {
		if !rr.Span.Contains(found.Hash) {
			continue
		}
		found.Range, found.Start, found.End = rr.ID, rr.Span.Start, rr.Span.End
		if rr.Active != nil {
			found.Segment, found.Epoch = rr.Active.ID, rr.Active.Epoch
			for _, n := range rr.Active.Replicas {
				found.Replicas = append(found.Replicas, NodeAddress{ID: n, Address: r.address[n]})
			}
			ref := base.RangeRef{Topic: r.ID, Range: rr.ID}
			if order := a.c.order(ReadNearest(), ref, rr.Active.Replicas, func(NodeID) bool { return false }); len(order) > 0 {
				found.ReadFrom = order[0]
			}
		}
		return found, nil
	}
	// newRoute has checked that the active ranges cover the key space.
	return found, base.Errorf(base.CodeInternal, "route key", "no range of topic %s covers %#x", topic, found.Hash)
}
