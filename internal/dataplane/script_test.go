package dataplane

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
)

// scripted are the links of a plane to followers that do what a test says.
type scripted struct {
	mu        sync.Mutex
	plane     *Plane
	followers map[base.NodeID]*scriptedFollower
	sessions  uint64
}

// scriptedFollower is one of them. Willing, it acks all that it is sent in order; else it only notes it.
type scriptedFollower struct {
	node    base.NodeID
	link    peer.Link
	willing bool
	full    bool // its queue takes nothing
	deaf    bool // what is sent to it is lost
	opens   []openMessage
	appends []appendMessage
	open    bool
	end     int64 // of what it has taken
	commit  int64 // as told
}

// newScripted makes links to willing followers, all up.
func newScripted(nodes ...base.NodeID) *scripted {
	s := &scripted{followers: make(map[base.NodeID]*scriptedFollower)}
	for _, node := range nodes {
		s.sessions++
		s.followers[node] = &scriptedFollower{
			node: node, willing: true, link: peer.Link{Node: node, Boot: boot, Session: s.sessions, Up: true},
		}
	}
	return s
}

func (s *scripted) DataLink(node base.NodeID) peer.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.followers[node]; f != nil {
		return f.link
	}
	return peer.Link{Node: node}
}

func (s *scripted) SendParts(node base.NodeID, kind peer.Kind, _ bool, parts ...[]byte) error {
	s.mu.Lock()
	f := s.followers[node]
	switch {
	case !f.link.Up:
		s.mu.Unlock()
		return base.Errorf(base.CodeUnreachable, "send", "no link")
	case f.full:
		s.mu.Unlock()
		return base.Errorf(base.CodeBusy, "send", "full")
	}
	answer := f.take(kind, bytes.Join(parts, nil))
	session := f.link.Session
	s.mu.Unlock()
	if answer != nil {
		s.ack(node, session, *answer)
	}
	return nil
}

// take notes a message and says what a willing follower answers.
func (f *scriptedFollower) take(kind peer.Kind, body []byte) *ackMessage {
	var head segmentHead
	switch {
	case f.deaf:
		return nil
	case kind == kindOpen:
		m, err := decodeOpen(body)
		if err != nil {
			panic(err)
		}
		head = m.segmentHead
		f.opens = append(f.opens, m)
		if !f.open {
			f.open, f.end = f.willing, m.base
		}
	default:
		m, err := decodeAppend(body)
		if err != nil {
			panic(err)
		}
		head = m.segmentHead
		f.appends = append(f.appends, m)
		f.commit = max(f.commit, m.commit)
		if m.first > f.end {
			return f.answer(head, ackWant)
		}
		if len(m.batch) == 0 {
			return nil
		}
		h, err := header.Check(m.batch, 0)
		if err != nil {
			panic(err)
		}
		f.end = max(f.end, h.End())
	}
	return f.answer(head, ackDurable)
}

func (f *scriptedFollower) answer(head segmentHead, status ackStatus) *ackMessage {
	if !f.willing {
		return nil
	}
	return &ackMessage{segmentHead: head, status: status, end: f.end, fsync: time.Millisecond}
}

// ack has a follower say something by a session.
func (s *scripted) ack(node base.NodeID, session uint64, m ackMessage) {
	s.mu.Lock()
	from := replica.Source{Node: node, Boot: s.followers[node].link.Boot}
	s.mu.Unlock()
	s.plane.receive(kindAck, m.encode(), arrival{from: from, session: session})
}

// edit changes a follower.
func (s *scripted) edit(node base.NodeID, change func(*scriptedFollower)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.followers[node])
}

// relink changes the link to a follower and tells the plane. A link that comes up is a new session.
func (s *scripted) relink(node base.NodeID, change func(*peer.Link)) {
	s.mu.Lock()
	l := &s.followers[node].link
	wasUp := l.Up
	change(l)
	if l.Up && !wasUp {
		s.sessions++
		l.Session = s.sessions
	}
	link := *l
	s.mu.Unlock()
	s.plane.OnLink(link)
}

func down(l *peer.Link) { l.Up = false }
func up(l *peer.Link)   { l.Up = true }

// trio is a plane that leads segment 1 with two scripted followers, in virtual time.
type trio struct {
	*rig
	links *scripted
}

var trioReplicas = []base.Replica{here, {Node: "n2", Disk: base.DiskID{2}}, {Node: "n3", Disk: base.DiskID{3}}}

func trioAssignment(seg base.SegmentID, epoch base.Epoch, at int64, prev base.SegmentID, c base.TopicConfig) meta.Assignment {
	a := assignment(seg, epoch, at, prev, c)
	a.Replicas, a.Boots = trioReplicas, []uint64{boot, boot, boot}
	return a
}

// trioBubble runs a test with a trio. prepare may change followers and options before the segment is led.
func trioBubble(t *testing.T, prepare func(*scripted, *Options), test func(t *testing.T, r *trio)) {
	links := newScripted("n2", "n3")
	bubble(t, func(o *Options) {
		o.Links = links
		if prepare != nil {
			prepare(links, o)
		}
	}, func(t *testing.T, r *rig) {
		links.plane = r.plane
		r.coord.replicas = trioReplicas
		require.Equal(t, meta.StatusHeld, r.assign(trioAssignment(1, 1, 0, 0, r.coord.config)).Status)
		test(t, &trio{r, links})
	})
}

// lead is what the plane leads, looked at in turn while nothing else runs: what changes later comes after that.
func (r *rig) lead() *lead {
	synctest.Wait()
	l, _ := ask(r.t.Context(), r.plane, testRef, func(a *actor) *lead { return a.lead })
	return l
}
