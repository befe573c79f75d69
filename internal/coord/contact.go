package coord

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Contact is what this node's own connection says of another node; the zero Contact that there is none.
type Contact struct {
	Kept    bool          // a connection is kept with it
	Refused bool          // its port is closed: the process is gone
	Silent  time.Duration // how long nothing has come from it; 0 while it is heard. Time in which this process stood still does not count
	Boot    uint64        // of the process that was connected last; 0 when there was none
}

// heard reports whether a message would reach the node now.
func (c Contact) heard() bool { return c.Kept && !c.Refused && c.Silent == 0 }

// Want says that somebody wants the range's active segment, whose leader may be gone: when it is, the segment's
// recovery goes before those that nobody asked for. It costs little where the leader is well, and does not block.
func (c *Coord) Want(ref base.RangeRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shard, known := c.homes[ref.Topic]
	if l := c.loops[shard]; known && l != nil {
		l.inbox.deliver(func(in *letters) { put(&in.wants, ref, true) })
	}
}
