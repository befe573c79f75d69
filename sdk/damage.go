package sdk

import (
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// damage is what a cursor knows of the copies of the offset that it is to fetch next, when one of them is damaged. Another
// may be whole, and is looked for as long as there is one that nobody has looked at: also one that is away, for it may come
// back. Only where all are known to be damaged the range fails.
type damage struct {
	at       int64         // the offset
	in       []base.NodeID // whose copies are damaged there; none: no damage was met
	relisted bool          // who holds the segment was asked anew since
	err      error         // the last of what was met
	waits    error         // what is waited for, once a round is over
}

// hereLocked reports whether damage was met at the cursor's next offset.
func (d *damage) hereLocked(cur *cursor) bool { return len(d.in) > 0 && d.at == cur.next }

// openLocked reports whether Poll has not come past the damage yet: what is fetched there, and behind it, may be dropped
// again.
func (d *damage) openLocked(cur *cursor) bool { return len(d.in) > 0 && cur.pos <= d.at }

// damagedLocked leaves a replica whose copy is damaged at the cursor's next offset for another.
func (cur *cursor) damagedLocked(node base.NodeID, err error, now time.Time) {
	d := &cur.damage
	if !d.hereLocked(cur) {
		*d = damage{at: cur.next}
	}
	if !slices.Contains(d.in, node) {
		d.in = append(d.in, node)
	}
	d.err = err
	cur.elsewhereLocked(err, now)
	if d.waits != nil {
		cur.lastErr = d.waits // that one of them was asked again is no news
	}
}

// spoiledLocked drops what was fetched and not returned yet, of which some is damaged.
func (cur *cursor) spoiledLocked(from base.NodeID, err error, now time.Time) {
	cur.gen++
	cur.fetching = false
	cur.k.dropChunksLocked(cur)
	cur.next = cur.pos
	cur.broker = nil // it may be another one by now, which is not to blame
	cur.k.c.cfg.logger.Warn("fetched data is damaged", "position", cur.position().String(), "node", from, "error", err)
	cur.replicas.useless(from, now)
	cur.damagedLocked(from, cur.corrupt(err), now)
	cur.k.nudge()
}

// roundOverLocked decides what becomes of the range when all who hold it were asked. Records that were fetched before are
// returned before the reader is told.
func (d *damage) roundOverLocked(cur *cursor, l *locating, now time.Time) {
	silent := slices.DeleteFunc(slices.Clone(l.among), func(n base.NodeID) bool { return slices.Contains(d.in, n) })
	if len(l.among) > 0 && len(silent) == 0 && (d.relisted || l.fresh) && !cur.aheadLocked() {
		cur.failLocked(base.Errorf(base.CodeCorruptData, "read "+cur.position().String(), "all copies are damaged here, on %s: %w", nodeNames(d.in), d.err).
			WithHint("seek beyond what is damaged, or restore a copy: the brokers' logs name the file"))
		return
	}
	d.waits = d.err
	if len(silent) > 0 {
		d.waits = base.Errorf(base.CodeCorruptData, "", "the copies that can be reached are damaged here, on %s; waiting for %s: %w", nodeNames(d.in), nodeNames(silent), d.err).
			WithHint("start what is away; if it never comes back, seek beyond what is damaged: the brokers' logs name the file")
	}
	cur.roundOverLocked(d.waits, now)
}

// nodeNames lists nodes: "n1, n2".
func nodeNames(nodes []base.NodeID) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
