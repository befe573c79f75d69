package dataplane

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

// leaderNode is the leader that a follower's tests play.
var (
	leaderNode = base.Replica{Node: "n2", Disk: base.DiskID{8}}
	source     = replica.Source{Node: leaderNode.Node, Boot: 3}
)

// heardAcks are the links of a node whose leader is the test: it notes what is said to it.
type heardAcks struct {
	mu    sync.Mutex
	acks  []ackMessage
	links map[base.NodeID]peer.Link
}

func (h *heardAcks) SendParts(node base.NodeID, kind peer.Kind, urgent bool, parts ...[]byte) error {
	m, err := decodeAck(bytes.Join(parts, nil))
	if err != nil || kind != kindAck || !urgent {
		panic("not an ack")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks = append(h.acks, m)
	return nil
}

func (h *heardAcks) DataLink(node base.NodeID) peer.Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[node]
}

// followRig is a plane on a fake log that follows what the test leads.
type followRig struct {
	*rig
	heard *heardAcks
}

func newFollowRig(t *testing.T, edit func(*Options)) *followRig {
	h := &heardAcks{links: map[base.NodeID]peer.Link{}}
	return &followRig{heard: h, rig: newRig(t, func(o *Options) {
		o.Links = h
		if edit != nil {
			edit(o)
		}
	})}
}

// followedBy is an assignment that the test leads and the rig follows.
func followedBy(seg base.SegmentID, epoch base.Epoch, at int64, prev base.SegmentID) meta.Assignment {
	a := assignment(seg, epoch, at, prev, roomy)
	a.Replicas, a.Boots = []base.Replica{leaderNode, here}, []uint64{source.Boot, boot}
	return a
}

func headOf(a meta.Assignment) segmentHead {
	return segmentHead{ref: a.Ref, epoch: a.Epoch, segment: a.Segment}
}

// open sends an open as the leader of a would, with what it remembers; nil: nothing.
func (r *followRig) open(from replica.Source, a meta.Assignment, s *rangestate.State, send bool) {
	if s == nil {
		s = rangestate.New()
	}
	m := openMessage{segmentHead: headOf(a), base: a.Base, openedMs: a.OpenedMs, checksum: s.Checksum(), hasState: send}
	b := m.encode()
	if send && !s.Empty() {
		b = append(b, s.Encode()...)
	}
	r.plane.receive(kindOpen, b, arrival{from: from})
}

// append sends a batch as the leader of a would.
func (r *followRig) send(from replica.Source, a meta.Assignment, first, commit int64, b []byte) {
	m := appendMessage{segmentHead: headOf(a), first: first, appendMs: 1000 + first, commit: commit, spanHi: ^uint64(0)}
	var head [appendHeadSize]byte
	m.put(&head)
	if b != nil {
		b = bytes.Clone(b)
		header.Patch(b, first, int32(a.Epoch))
	}
	r.plane.receive(kindAppend, append(head[:], b...), arrival{from: from})
}

// acks are those that came since the last call, once nothing moves any more.
func (r *followRig) acks() []ackMessage {
	synctest.Wait()
	r.heard.mu.Lock()
	defer r.heard.mu.Unlock()
	a := r.heard.acks
	r.heard.acks = nil
	return a
}

func (r *followRig) expect(want ...ackMessage) {
	r.t.Helper()
	got := r.acks()
	for i := range got {
		got[i].fsync = 0
		if i < len(want) {
			want[i].segmentHead = got[i].segmentHead
		}
	}
	require.Equal(r.t, want, got)
}

func durableTo(end int64) ackMessage { return ackMessage{status: ackDurable, end: end} }
func lostBy(why replica.Reason) ackMessage {
	return ackMessage{status: ackLost, reason: why}
}

func followBubble(t *testing.T, edit func(*Options), run func(t *testing.T, r *followRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newFollowRig(t, edit)
		defer r.close()
		run(t, r)
	})
}

// following1 is followBubble with segment 1 open, and nobody to tell of it any more.
func following1(t *testing.T, edit func(*Options), run func(t *testing.T, r *followRig, a meta.Assignment)) {
	followBubble(t, edit, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		r.open(source, a, nil, false)
		r.expect(durableTo(0))
		run(t, r, a)
	})
}

func (m ackMessage) at(end int64) ackMessage { m.end = end; return m }
