package peer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

type laneID int

const (
	mainLane laneID = iota
	bulkLane
	dataLane
	laneCount
)

func (id laneID) tag() Tag {
	switch id {
	case mainLane:
	case bulkLane:
		return TagBulk
	case dataLane:
		return TagData
	}
	return TagMain
}

// laneOf is the lane of a tag.
func laneOf(tag Tag) laneID {
	switch tag {
	case TagBulk:
		return bulkLane
	case TagData:
		return dataLane
	}
	return mainLane
}

// peer is another node. The host's lock guards it.
type peer struct {
	node  base.NodeID
	kept  bool
	state State
	data  Link // of its data lane, as told last
	homes homes
	lanes [laneCount]*lane
}

// lane is one of the ways to a peer. The host's lock guards it.
type lane struct {
	id      laneID
	peer    *peer
	conn    *conn         // established and not failed, as far as is known
	keeping bool          // it has a keeper goroutine
	demand  bool          // a call wants an attempt
	dialing bool          // an attempt of ours is under way
	pausing bool          // the last attempt failed, the next is not due
	failed  error         // why it did
	attempt *attempt      // what calls wait for; nil when no call does
	changed chan struct{} // capacity one; ends a pause
}

// attempt is waited for until the lane has a connection or could not get one. err is set before done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

// peerLocked finds a peer or makes it.
func (h *Host) peerLocked(node base.NodeID) (*peer, error) {
	if p := h.peers[node]; p != nil {
		return p, nil
	}
	if len(h.peers) >= h.o.MaxPeers {
		return nil, base.Errorf(base.CodeBusy, "connect to node "+string(node), "this node has %d peers already", len(h.peers))
	}
	p := &peer{node: node, state: State{Since: time.Now()}}
	for id := range p.lanes {
		p.lanes[id] = &lane{id: laneID(id), peer: p, changed: make(chan struct{}, 1)}
	}
	h.peers[node] = p
	h.markLocked()
	return p, nil
}

// dropIfIdleLocked forgets a peer that nobody wants and that has no connection.
func (h *Host) dropIfIdleLocked(p *peer) {
	if p.kept {
		return
	}
	for _, l := range p.lanes {
		if l.conn != nil || l.keeping {
			return
		}
	}
	if h.peers[p.node] == p {
		delete(h.peers, p.node)
		h.leaveLocked(p.homes.dialled)
		h.leaveLocked(p.homes.met)
		h.markLocked()
	}
}

// demandLocked asks for an attempt and returns it.
func (h *Host) demandLocked(l *lane) *attempt {
	l.demand = true
	if l.attempt == nil {
		l.attempt = &attempt{done: make(chan struct{})}
	}
	h.keepLocked(l)
	return l.attempt
}

// keepLocked starts the lane's keeper unless it has one.
func (h *Host) keepLocked(l *lane) {
	if !l.keeping && l.conn == nil {
		l.keeping = h.tasks.Go("keep "+string(l.peer.node)+"/"+l.id.tag().String(), func(ctx context.Context) error {
			h.keep(ctx, l)
			return nil
		})
	}
}

// settleLocked tells the calls that wait for the lane.
func (l *lane) settleLocked(err error) {
	l.demand = false
	if l.attempt != nil {
		l.attempt.err = err
		close(l.attempt.done)
		l.attempt = nil
	}
}

// triedFor is how many times RetryFirst a connection lasts at least if it was no mere try.
const triedFor = 10

// keep is the keeper: it dials while the lane is wanted and has no connection.
func (h *Host) keep(ctx context.Context, l *lane) {
	failures := 0
	for {
		c, wanted := h.turn(ctx, l)
		switch {
		case !wanted:
			return
		case c != nil:
			select {
			case <-c.done:
			case <-ctx.Done():
			}
			// Who ends connections as fast as they are made is not worth a tight loop; else the first attempt after
			// a loss comes at once, and finds out whether the process is gone. It may have begun a moment ago, and been
			// waited for long before.
			if failures++; time.Since(c.born) >= triedFor*h.o.RetryFirst {
				failures = 0
			}
			h.ended(c)
		default:
			if h.attempt(ctx, l) {
				continue
			}
			failures++
		}
		if failures > 0 {
			h.pause(ctx, l, failures)
		}
	}
}

// turn is what the keeper does next: wait for the connection, end, or (neither) dial.
func (h *Host) turn(ctx context.Context, l *lane) (c *conn, wanted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.pausing = false
	if ctx.Err() != nil || h.closed {
		l.keeping = false
		l.settleLocked(shuttingDown("connect"))
		return nil, false
	}
	if l.conn != nil {
		return l.conn, true
	}
	if !l.demand && (!l.peer.kept || l.id == bulkLane) {
		l.keeping = false
		h.dropIfIdleLocked(l.peer)
		return nil, false
	}
	l.demand = false
	l.dialing = true
	return nil, true
}

// attempt dials once and reports whether the lane has a connection now.
func (h *Host) attempt(ctx context.Context, l *lane) bool {
	h.stats.dials.Add(1)
	err := h.dial(ctx, l)
	h.mu.Lock()
	defer h.mu.Unlock()
	l.dialing = false
	if l.conn != nil { // by this attempt, or the peer's meanwhile
		l.settleLocked(nil)
		return true
	}
	if err == nil {
		err = base.Errorf(base.CodeUnreachable, "connect to node "+string(l.peer.node), "the connection was lost again")
	}
	h.stats.dialFailures.Add(1)
	h.o.Logger.Debug("dial failed", "node", l.peer.node, "lane", l.id.tag().String(), "error", err)
	l.failed, l.pausing = err, true
	l.settleLocked(err)
	if errors.Is(err, syscall.ECONNREFUSED) {
		h.refusedLocked(l)
	}
	return false
}

// dial opens a connection, shakes hands and installs it.
func (h *Host) dial(ctx context.Context, l *lane) error {
	node := l.peer.node
	op := "connect to node " + string(node)
	resolve := h.o.Resolve
	if l.id == dataLane {
		resolve = h.o.ResolveData
	}
	addr, ok := resolve(node)
	if !ok {
		return base.Errorf(base.CodeNodeNotFound, op, "its address is not known")
	}
	h.dials(l.peer, addr)
	ctx, cancel := context.WithTimeout(ctx, h.o.DialTimeout)
	defer cancel()
	nc, err := DialTag(ctx, h.o.Dial, addr, l.id.tag())
	if err != nil {
		return base.Wrap(base.CodeUnreachable, op, err)
	}
	life := &lifeReader{nc: nc, host: h}
	in := newFrameReader(life)
	mine := h.hello(node)
	var theirs Hello
	err = within(ctx, nc, func() (err error) {
		theirs, err = h.greet(nc, in, mine)
		return err
	})
	if err != nil {
		_ = nc.Close()
		return base.Wrap(base.CodeUnreachable, op, err)
	}
	return h.installDialed(l, theirs, mine.Cluster, nc, life, in)
}

// installDialed makes a connection that the peer has accepted the lane's own, unless the peer's attempt has won.
func (h *Host) installDialed(l *lane, theirs Hello, cluster base.ClusterID, nc net.Conn, life *lifeReader, in *frameReader) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || l.conn != nil && theirs.Node < h.o.Node {
		_ = nc.Close()
		return base.Errorf(base.CodeUnreachable, "connect to node "+string(theirs.Node), "another connection was made meanwhile")
	}
	h.installLocked(l, newConn(h, l, theirs, cluster, nc, life, in))
	return nil
}

// installLocked puts a connection into its lane, in place of one that is there, and runs it.
func (h *Host) installLocked(l *lane, c *conn) {
	if old := l.conn; old != nil {
		old.fail(base.Errorf(base.CodeUnreachable, "", "replaced by a newer connection"))
	}
	l.conn = c
	h.meetsLocked(l.peer, c.nc)
	c.life.conn.Store(c)
	mark(l.changed)
	l.settleLocked(nil)
	name := string(l.peer.node) + "/" + l.id.tag().String()
	read := h.tasks.Go("read "+name, func(context.Context) error { c.read(); return nil })
	write := h.tasks.Go("write "+name, func(context.Context) error { c.write(); return nil })
	switch {
	case !read || !write:
		c.fail(shuttingDown("connect"))
	case c.cluster != h.cluster:
		c.fail(base.Errorf(base.CodeUnreachable, "", "this node has joined a cluster meanwhile"))
	}
	switch l.id {
	case mainLane:
		h.meetLocked(l.peer, c.theirs)
	case dataLane:
		h.linkLocked(Link{Node: c.theirs.Node, Boot: c.theirs.Boot, Session: c.session, Up: true})
	case bulkLane:
	}
}

// ended takes a failed connection out of its lane.
func (h *Host) ended(c *conn) {
	if !h.takeOut(c) {
		return
	}
	level, reason := slog.LevelInfo, c.reason()
	if errors.Is(reason, base.CodeShuttingDown) { // ours: nobody wonders
		level = slog.LevelDebug
	}
	h.o.Logger.Log(context.Background(), level, "peer connection ended", "node", c.theirs.Node, "lane", c.lane.id.tag().String(), "error", reason)
}

func (h *Host) takeOut(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.loose, c)
	l := c.lane
	if l.conn != c {
		return false
	}
	l.conn = nil
	switch l.id {
	case mainLane:
		l.peer.state.Heard = h.at(c.heard.Load())
	case dataLane:
		h.linkLocked(Link{Node: c.theirs.Node, Boot: c.theirs.Boot, Session: c.session, Heard: h.at(c.heard.Load())})
	case bulkLane:
	}
	if l.id != bulkLane && l.peer.kept && !h.closed {
		h.keepLocked(l)
	}
	h.dropIfIdleLocked(l.peer)
	return true
}

// pause waits a random part of a bound that doubles with each failure (full jitter), or until something changes.
func (h *Host) pause(ctx context.Context, l *lane, failures int) {
	h.mu.Lock()
	connected := l.conn != nil
	select {
	case <-l.changed: // before now
	default:
	}
	h.mu.Unlock()
	if connected {
		return
	}
	bound := h.o.RetryMost
	if doublings := failures - 1; doublings < 16 {
		bound = min(bound, h.o.RetryFirst<<doublings)
	}
	timer := time.NewTimer(rand.N(bound) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.changed:
	case <-ctx.Done():
	}
}
