package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Status is what this node can say of another from their connection alone.
type Status uint8

// The statuses.
const (
	Unreachable Status = iota // silent for LostAfter, or never heard
	Reachable
	Refused // its port is closed: the process is gone. Stays until the node is heard again
)

// String prints unreachable, reachable or refused.
func (s Status) String() string {
	switch s {
	case Unreachable:
		return "unreachable"
	case Reachable:
		return "reachable"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("status_%d", uint8(s))
}

// State is a peer's status and what is known beside it.
type State struct {
	Status   Status
	Since    time.Time     // when the status began
	Heard    time.Time     // when a byte arrived last; zero: never
	RTT      time.Duration // of the last ping
	Boot     uint64        // of the process that was connected last
	Instance base.UUID     // of the same
}

// Liveness is the state of every peer that is kept or connected.
func (h *Host) Liveness() map[base.NodeID]State {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := make(map[base.NodeID]State, len(h.peers))
	for node, p := range h.peers {
		s := p.state
		if c := p.lanes[mainLane].conn; c != nil {
			s.Heard, s.RTT = h.at(c.heard.Load()), time.Duration(c.rtt.Load())
		}
		states[node] = s
	}
	return states
}

// Subscribe returns a channel that gets a token whenever a status, or the process behind it, has changed since the
// last token was taken. Look at Liveness then. unsubscribe ends it; the channel is never closed.
func (h *Host) Subscribe() (changed <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.marks, c)
	}
}

func (h *Host) markLocked() {
	for c := range h.marks {
		mark(c)
	}
}

// at is a moment of the host's clock as a time.
func (h *Host) at(clock int64) time.Time { return h.started.Add(time.Duration(clock)) }

func (h *Host) setStatusLocked(p *peer, s Status) {
	if p.state.Status == s {
		return
	}
	p.state.Status, p.state.Since = s, time.Now()
	h.markLocked()
}

// meetLocked notes who answers on a new main lane.
func (h *Host) meetLocked(p *peer, theirs Hello) {
	if p.state.Instance != theirs.Instance {
		p.state.Boot, p.state.Instance = theirs.Boot, theirs.Instance
		h.markLocked()
	}
	h.setStatusLocked(p, Reachable)
}

// watch is the goroutine that pings the silent and gives up the lost.
func (h *Host) watch(ctx context.Context) error {
	ticker := time.NewTicker(h.o.PingAfter / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// look takes one look at all peers.
func (h *Host) look() {
	if stood := h.lookAround(); stood > 0 {
		h.o.Logger.Warn("this process stood still", "for_ms", stood.Milliseconds())
	}
}

// lookAround returns for how long the process stood still before, 0 if it did not.
func (h *Host) lookAround() (stood time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock()
	// Whoever was stopped has heard nobody, and that says nothing about them: everybody gets LostAfter from now.
	if gap := time.Duration(now - h.watched); gap > h.o.LostAfter/2 {
		h.resumed = now
		stood = gap
	}
	h.watched = now
	for _, p := range h.peers {
		heard := h.resumed
		for _, l := range p.lanes {
			if l.conn != nil {
				h.lookAtLocked(l.conn, now)
			}
		}
		if c := p.lanes[mainLane].conn; c != nil {
			heard = max(heard, c.heard.Load())
		} else if !p.state.Heard.IsZero() {
			heard = max(heard, int64(p.state.Heard.Sub(h.started)))
		}
		h.judgeSilenceLocked(p, time.Duration(now-heard))
	}
	return stood
}

// lookAtLocked pings a silent connection, and ends one that is dead, or bulk and idle.
func (h *Host) lookAtLocked(c *conn, now int64) {
	silence := time.Duration(now - max(c.heard.Load(), h.resumed))
	switch {
	case silence >= h.o.CutAfter:
		c.fail(base.Errorf(base.CodeUnreachable, "", "nothing was heard for %s", silence.Round(time.Millisecond)))
	case c.lane.id == bulkLane && time.Duration(now-c.used.Load()) >= h.o.BulkIdle && c.idle():
		c.fail(base.Errorf(base.CodeUnreachable, "", "it was idle"))
	case silence >= h.o.PingAfter && time.Duration(now-c.pinged) >= h.o.PingAfter:
		c.pinged = now
		c.ping()
	}
}

func (h *Host) judgeSilenceLocked(p *peer, silence time.Duration) {
	lost := silence >= h.o.LostAfter
	switch {
	case p.state.Status == Reachable && lost:
		h.stats.silences.Add(1)
		h.setStatusLocked(p, Unreachable)
	case p.state.Status == Unreachable && !lost && p.lanes[mainLane].conn != nil:
		h.setStatusLocked(p, Reachable)
	}
}
