package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// cutBelow finds where a range that is led here was cut: the end of its newest loss below an offset that a client has
// seen, and that is above everything there is now. Only the leader may say so. A follower that has less may be behind.
func (s *Server) cutBelow(ref base.RangeRef, seen int64) (end int64, cut bool) {
	if !s.plane.LedHere(ref) {
		return 0, false
	}
	losses := s.losses(ref.Topic)
	if losses == nil {
		return 0, false
	}
	for _, l := range losses.Recent {
		if l.Range == ref.Range && l.End < seen {
			end, cut = l.End, true
		}
	}
	return end, cut
}

// lossesFresh is how long another node's word on a topic's losses is used.
const lossesFresh = 5 * time.Second

// losses are a topic's, as far as is known here. Whose shard is elsewhere is asked for in the background: a fetch does
// not wait for metadata, and asks again soon.
func (s *Server) losses(topic base.TopicID) *meta.Losses {
	shard, ok := s.topics.get(topic)
	if !ok {
		shard, ok = s.findHere(topic)
	}
	if ok {
		if t := s.topicHere(shard, topic); t != nil {
			return t.Losses
		}
	}
	known, fresh := s.cuts.get(topic, time.Now())
	if !fresh {
		_ = s.metaPool.run(func() { // when the pool is full, the next fetch tries again
			ctx, cancel := context.WithTimeout(context.Background(), metaTimeout)
			defer cancel()
			if t, err := s.topicCopy(ctx, "look for losses", topic); err == nil {
				s.cuts.put(topic, t.Losses)
			}
		})
	}
	return known
}

// lossCache keeps what other nodes said of topics that are led here.
type lossCache struct {
	mu sync.Mutex
	m  map[base.TopicID]cachedLosses
}

type cachedLosses struct {
	losses *meta.Losses
	at     time.Time // of the last question
}

const maxLossesCached = 1024

// get returns what is known, and whether it need not be asked for: somebody who is told so has begun to ask.
func (c *lossCache) get(topic base.TopicID, now time.Time) (*meta.Losses, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.m[topic]
	if ok && now.Sub(known.at) < lossesFresh {
		return known.losses, true
	}
	if c.m == nil || len(c.m) >= maxLossesCached {
		c.m = make(map[base.TopicID]cachedLosses)
	}
	c.m[topic] = cachedLosses{known.losses, now}
	return known.losses, false
}

func (c *lossCache) put(topic base.TopicID, losses *meta.Losses) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.m[topic]; ok {
		known.losses = losses
		c.m[topic] = known
	}
}
