package server

import (
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

const (
	isolatedAfter = time.Second            // without a word of any node
	isolationPoll = 200 * time.Millisecond // how old the answer may be
)

// isolation remembers whether this node is cut off from all others. Clients may still reach it, and then what it leads
// may have gone on elsewhere without its knowing.
type isolation struct {
	at atomic.Int64 // when it was looked at last, in Unix nanoseconds
	is atomic.Bool
}

// isolated reports whether no other node has been reachable for a second. A node that has never had another is not.
func (s *Server) isolated() bool {
	x, now := &s.alone, time.Now()
	last := x.at.Load()
	if now.UnixNano()-last < int64(isolationPoll) || !x.at.CompareAndSwap(last, now.UnixNano()) {
		return x.is.Load()
	}
	x.is.Store(cutOff(routedPeers{s}.Liveness(), now))
	return x.is.Load()
}

// cutOff judges the connections that a node keeps.
func cutOff(links map[base.NodeID]peer.State, now time.Time) bool {
	for _, l := range links {
		if l.Status == peer.Reachable || now.Sub(l.Since) < isolatedAfter {
			return false
		}
	}
	return len(links) > 0
}

// mayGoOnElsewhere reports whether a range that is led here could have another leader by now that this node has not heard
// of. One without other replicas cannot, for nobody else knows where it ends.
func (s *Server) mayGoOnElsewhere(ref base.RangeRef) bool {
	if !s.isolated() {
		return false
	}
	shard, ok := s.topics.get(ref.Topic)
	if !ok {
		shard, ok = s.findHere(ref.Topic)
	}
	if !ok {
		return true
	}
	t := s.topicHere(shard, ref.Topic)
	if t == nil || t.Range(ref.Range) == nil {
		return true
	}
	seg := t.Range(ref.Range).Active()
	return seg == nil || len(seg.Replicas) > 1
}
