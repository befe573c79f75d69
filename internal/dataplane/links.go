package dataplane

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
)

// Links is what a plane needs of the connections between nodes; *peer.Host is one. A part that was handed over must not
// change any more. An error means that nothing was queued: CodeUnreachable without a connection, CodeBusy at a limit.
type Links interface {
	SendParts(node base.NodeID, kind peer.Kind, urgent bool, parts ...[]byte) error
	DataLink(node base.NodeID) peer.Link
}

// noLinks are those of a node that is alone.
type noLinks struct{}

func (noLinks) SendParts(base.NodeID, peer.Kind, bool, ...[]byte) error {
	return base.Errorf(base.CodeUnreachable, opReplicate, "there are no other nodes")
}

func (noLinks) DataLink(node base.NodeID) peer.Link { return peer.Link{Node: node} }

// The kinds of the data lane.
const (
	kindOpen   = peer.Replica + 1
	kindAppend = peer.Replica + 2
	kindAck    = peer.Replica + 3
)

// Register has a Host give its data lane's messages to a plane, which may come later than they: until then they are
// dropped, as they would be in a process that has not begun.
func Register(h *peer.Host, plane func() *Plane) {
	for _, kind := range []peer.Kind{kindOpen, kindAppend, kindAck} {
		h.Register(kind, func(_ context.Context, r *peer.Request) {
			p := plane()
			if p == nil {
				r.Reply(nil)
				return
			}
			p.receive(kind, r.Body, arrival{
				from: replica.Source{Node: r.From.Node, Boot: r.From.Boot}, session: r.Session, request: r,
			})
		})
	}
}

// arrival is what is known of a message beside its bytes.
type arrival struct {
	from    replica.Source
	session uint64        // of the connection that it came by
	request *peer.Request // nil in tests
}

// done gives the message's bytes back to the connection's window: they are let go of, or counted elsewhere.
func (a *arrival) done() {
	if a.request != nil {
		a.request.Reply(nil)
	}
}

// inbound is a message from another node on its way to its range's actor.
type inbound interface {
	deliver(a *actor, now time.Time)
	done()
}

type openArrival struct {
	arrival
	openMessage
}

type appendArrival struct {
	arrival
	appendMessage
	header header.Header // of the batch, if there is one
}

type ackArrival struct {
	arrival
	ackMessage
}

func (m *openArrival) deliver(a *actor, now time.Time) {
	if a.phase == gone { // removed while it was on its way; its leader says it again
		m.done()
		return
	}
	a.onOpenFrom(m, now)
}

func (m *appendArrival) deliver(a *actor, now time.Time) {
	if a.phase == gone {
		m.done()
		return
	}
	a.onAppendFrom(m, now)
}

func (m *ackArrival) deliver(a *actor, now time.Time) {
	a.onAckFrom(m, now)
	m.done()
}

// receive takes one message, on the goroutine that read it. Whoever handles it in turn calls done.
func (p *Plane) receive(kind peer.Kind, body []byte, from arrival) {
	a, m, err := p.decode(kind, body, from)
	if err != nil {
		p.misunderstood(from.from.Node, err)
	}
	if a == nil {
		from.done()
		return
	}
	a.box.post(event{kind: evInbound, in: m})
}

// misunderstood reports a message that is none, now and then.
func (p *Plane) misunderstood(from base.NodeID, err error) {
	now := p.age(time.Now())
	if last := p.warnedMs.Load(); (last == 0 || now-last >= warnEvery.Milliseconds()) && p.warnedMs.CompareAndSwap(last, max(1, now)) {
		p.o.Logger.Warn("message of a replica not understood", "node", string(from), "error", err)
	}
}

// decode finds out what a message is and whose. Only an open is news to a node that knows nothing of the range: it may
// have come before the assignment, and waits for it.
func (p *Plane) decode(kind peer.Kind, body []byte, from arrival) (*actor, inbound, error) {
	switch kind {
	case kindOpen:
		m, err := decodeOpen(body)
		if err != nil {
			return nil, nil, err
		}
		a, err := p.actorFor(m.ref, false)
		if err != nil { // a topic that was deleted: its leader hears of that elsewhere
			return nil, nil, nil //nolint:nilerr // nobody to tell
		}
		return a, &openArrival{from, m}, nil
	case kindAppend:
		m, err := decodeAppend(body)
		if err != nil {
			return nil, nil, err
		}
		in := &appendArrival{arrival: from, appendMessage: m}
		if err := in.admit(); err != nil {
			return nil, nil, err // its leader is told of the gap that it leaves
		}
		return p.find(m.ref), in, nil
	case kindAck:
		m, err := decodeAck(body)
		if err != nil {
			return nil, nil, err
		}
		return p.find(m.ref), &ackArrival{from, m}, nil
	}
	return nil, nil, nil
}

// sendAck tells the leader of a segment what this node has of it. An ack that is lost is made up for by the next one, or
// when the leader asks.
func (p *Plane) sendAck(to base.NodeID, m *ackMessage) {
	_ = p.o.Links.SendParts(to, kindAck, true, m.encode())
}

// OnLink hears that the data lane of a node came up or went down. Segments with a follower there look at it again, on
// the watchdog's goroutine.
func (p *Plane) OnLink(l peer.Link) {
	p.links.Lock()
	p.links.changed[l.Node] = struct{}{}
	p.links.Unlock()
	mark(p.linkWake)
}

// relink gives a turn to every actor that leads a segment with a follower on a node whose link has changed.
func (p *Plane) relink() {
	p.links.Lock()
	changed := p.links.changed
	p.links.changed = make(map[base.NodeID]struct{})
	actors := make(map[*actor]struct{})
	for node := range changed {
		for a := range p.links.leads[node] {
			actors[a] = struct{}{}
		}
	}
	p.links.Unlock()
	for a := range actors {
		a.box.post(event{kind: evLinks})
	}
}

// leadsWith has an actor hear of the links to those who follow it, and leadsNoMore no longer.
func (p *Plane) leadsWith(a *actor, followers []follower) {
	p.links.Lock()
	defer p.links.Unlock()
	for i := range followers {
		set := p.links.leads[followers[i].node]
		if set == nil {
			set = make(map[*actor]struct{})
			p.links.leads[followers[i].node] = set
		}
		set[a] = struct{}{}
	}
}

func (p *Plane) leadsNoMore(a *actor, followers []follower) {
	p.links.Lock()
	defer p.links.Unlock()
	for i := range followers {
		node := followers[i].node
		if delete(p.links.leads[node], a); len(p.links.leads[node]) == 0 {
			delete(p.links.leads, node)
		}
	}
}

// FollowerNodes lists the nodes that follow what this node leads and keeps in memory.
func (p *Plane) FollowerNodes() []base.NodeID {
	p.links.Lock()
	defer p.links.Unlock()
	return slices.Sorted(maps.Keys(p.links.leads))
}
