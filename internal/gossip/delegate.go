package gossip

import (
	"errors"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls, mostly under its own lock: each method takes the agent's lock for a moment, marks
// and returns. None calls memberlist.
type delegate struct{ g *generation }

var (
	_ memberlist.Delegate      = delegate{}
	_ memberlist.EventDelegate = delegate{}
	_ memberlist.AliveDelegate = delegate{}
)

// NotifyAlive refuses lives that are over, foreign or somebody else's.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	if d.g.retired.Load() {
		return errRetired
	}
	id, l, err := parseName(n.Name)
	if err != nil {
		return err
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return err
	}
	v := d.g.agent.admit(word{
		id: id, life: l, process: process{l.Boot, m.StartedMs, m.Instance}, cluster: m.Cluster,
		address: hostPort(n.Addr, n.Port),
	})
	if v.veto != "" {
		return errors.New(v.veto)
	}
	return nil
}

// NotifyLeave buries: from now on this name stays dead.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	if d.g.retired.Load() {
		return // a suspicion that ran out after we had stopped listening says nothing about anybody
	}
	if id, l, err := parseName(n.Name); err == nil {
		d.g.agent.bury(id, l)
	}
}

func (d delegate) NotifyJoin(*memberlist.Node)   { d.g.agent.markDirty() }
func (d delegate) NotifyUpdate(*memberlist.Node) { d.g.agent.markDirty() }

func (d delegate) NodeMeta(int) []byte {
	a := d.g.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.meta
}

// NotifyMsg gets our own messages; b is memberlist's again when it returns.
func (d delegate) NotifyMsg(b []byte) {
	a := d.g.agent
	switch {
	case len(b) == 0 || d.g.retired.Load():
	case b[0] == kindClaim:
		var c Claim
		if decoding.Unmarshal(b[1:], &c) == nil {
			a.mergeClaim(c)
		}
	default:
		if n := decodeNotice(b); n != nil {
			a.hear(n)
		}
	}
}

func (d delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.g.agent.claims.spread.GetBroadcasts(overhead, limit)
}

func (d delegate) LocalState(bool) []byte {
	a := d.g.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claims.encode()
}

func (d delegate) MergeRemoteState(b []byte, _ bool) {
	if d.g.retired.Load() {
		return
	}
	a := d.g.agent
	a.mu.Lock()
	changed := a.claims.mergeAll(b)
	a.mu.Unlock()
	if changed {
		a.notify()
	}
}
