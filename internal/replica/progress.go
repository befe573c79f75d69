package replica

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// link is what a leader can expect of a follower.
type link uint8

const (
	linkUp   link = iota + 1 // is sent batches, acks them
	linkDown                 // is sent nothing; may come back within Config.Redial
	linkLost                 // will never ack again, in this segment
)

// progress is what the leader knows of one replica. Invariant: Base <= acked <= sent <= next.
type progress struct {
	node  base.NodeID
	link  link  // the leader's own disk is always up
	acked int64 // durable end it has reported
	sent  int64 // end of what it has been sent; followers only
	told  int64 // the commit it has been told, or unknown; followers only

	still  time.Duration // how long it has been watched without progress, with work before it
	downAt time.Time     // since when its link has been down
}

// unknown is a commit that no follower was told: the next one is news to it.
const unknown = -1

func newProgress(node base.NodeID, at int64) progress {
	return progress{node: node, link: linkUp, acked: at, sent: at, told: at}
}

// up begins a session with the process that the follower was. What it had not acked may never have arrived.
func (p *progress) up() {
	p.link, p.sent, p.told, p.still = linkUp, p.acked, unknown, 0
}

func (p *progress) down(now time.Time) {
	p.link, p.downAt = linkDown, now
}

// rewind goes back to what the follower holds. Below what it acked there is nothing to go back to: such a request was
// overtaken on its way.
func (p *progress) rewind(end int64) {
	p.sent = min(p.sent, max(end, p.acked))
}
