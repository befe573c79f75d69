package coord

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// opening is one caller of AwaitOpen.
type opening struct {
	topic base.TopicID
	done  chan struct{} // closed when every active segment of the topic is open, or the topic has gone
}

// AwaitOpen returns when every active segment of a topic has been confirmed by a node that holds it, so that appends are
// taken, wherever its leader is. The topic must have been applied before the call, by the shard that is led here. The
// error is CodeNotLeader when the leadership ends first, and CodeTimeout when ctx does.
func (c *Coord) AwaitOpen(ctx context.Context, shard base.ShardID, topic base.TopicID) error {
	const op = "open topic"
	c.mu.Lock()
	l := c.loops[shard]
	c.mu.Unlock()
	if l == nil {
		return base.Errorf(base.CodeNotLeader, op, "shard %s is not coordinated here", shard)
	}
	o := &opening{topic: topic, done: make(chan struct{})}
	l.inbox.deliver(func(in *letters) { in.openings = append(in.openings, o) })
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		l.inbox.deliver(func(in *letters) { in.givenUp = append(in.givenUp, o) })
		return base.Wrap(base.CodeTimeout, op, context.Cause(ctx))
	case <-l.ctx.Done():
		return base.Wrap(base.CodeNotLeader, op, context.Cause(l.ctx))
	}
}

// expect takes in who waits for topics to open, and who does no longer.
func (l *loop) expect(in letters) {
	for _, o := range in.openings {
		l.openings[o] = struct{}{}
	}
	for _, o := range in.givenUp {
		delete(l.openings, o)
	}
}

// awaited reports whether somebody waits for a topic to open.
func (l *loop) awaited(topic base.TopicID) bool {
	for o := range l.openings {
		if o.topic == topic {
			return true
		}
	}
	return false
}

// settleOpenings answers those whose topics are open by now. What has been applied before they asked is filed by then,
// for both go through the same inbox.
func (l *loop) settleOpenings() {
	if len(l.openings) == 0 {
		return
	}
	_ = l.view(func(s *meta.State) error { // a shard that cannot be read now is looked at again
		for o := range l.openings {
			if l.isOpen(s.Topic(o.topic)) {
				close(o.done)
				delete(l.openings, o)
			}
		}
		return nil
	})
}

// isOpen reports whether nothing of a topic is still to be opened.
func (l *loop) isOpen(t *meta.Topic) bool {
	if t == nil {
		return true
	}
	for _, r := range t.Ranges {
		if seg := r.Active(); seg != nil && l.unopened[seg.ID] {
			return false
		}
	}
	return true
}
