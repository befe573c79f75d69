package shard

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

const (
	beatWindow   = 200 * time.Millisecond // heartbeats to one node within it share a message
	beatPatience = 500 * time.Millisecond // for the slowest group of a message; the others do not wait longer
	beatTimeout  = 2 * time.Second        // for the whole of it
	beatsAtMost  = MaxShards              // in one message
)

// heartbeats gathers what the groups of this node have to say to the same node. Each is handled by its own group there
// and answered by it: nothing here knows an answer.
type heartbeats struct {
	peers *peer.Host
	still func() bool // this node's log stands still
	mu    sync.Mutex
	nodes map[base.NodeID]*window
}

// window is the message to one node that is being gathered.
type window struct {
	beats   []envelope
	answers []chan heartbeatResult
}

type heartbeatResult struct {
	answer appendAnswer
	err    error
}

func newHeartbeats(p *peer.Host, still func() bool) *heartbeats {
	return &heartbeats{peers: p, still: still, nodes: make(map[base.NodeID]*window)}
}

// send waits for the answer to a heartbeat that leaves with the next message to its node.
func (b *heartbeats) send(ctx context.Context, node base.NodeID, e envelope) (appendAnswer, error) {
	answer := b.join(node, e)
	timer := time.NewTimer(beatTimeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		return r.answer, r.err
	case <-timer.C:
		return appendAnswer{}, base.Errorf(base.CodeTimeout, "send heartbeat", "node %s has not answered", node).WithOutcome(base.Unknown)
	case <-ctx.Done():
		return appendAnswer{}, base.Wrap(base.CodeCanceled, "send heartbeat", context.Cause(ctx))
	}
}

func (b *heartbeats) join(node base.NodeID, e envelope) <-chan heartbeatResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.nodes[node]
	if w == nil {
		w = &window{}
		b.nodes[node] = w
		time.AfterFunc(beatWindow, func() { b.flush(node, w) })
	}
	c := make(chan heartbeatResult, 1)
	w.beats, w.answers = append(w.beats, e), append(w.answers, c)
	return c
}

// flush sends a window. What answers it runs on the connection's reader and does not block.
func (b *heartbeats) flush(node base.NodeID, w *window) {
	b.mu.Lock()
	delete(b.nodes, node)
	b.mu.Unlock()
	still := b.still()
	for len(w.beats) > 0 {
		n := min(len(w.beats), beatsAtMost)
		answers := w.answers[:n]
		_, err := b.peers.Go(node, kindHeartbeats, 0, encode(&heartbeatsMessage{Beats: w.beats[:n], Still: still}), func(body []byte, err error) {
			distribute(answers, body, err)
		})
		if err != nil {
			distribute(answers, nil, err)
		}
		w.beats, w.answers = w.beats[n:], w.answers[n:]
	}
}

// distribute gives everybody who waits their part.
func distribute(waiting []chan heartbeatResult, body []byte, err error) {
	var m heartbeatsAnswer
	if err == nil {
		err = decode(body, &m)
	}
	if err == nil && len(m.Answers) != len(waiting) {
		err = base.Errorf(base.CodeCorruptFrame, "send heartbeat", "%d heartbeats got %d answers", len(waiting), len(m.Answers))
	}
	for i, c := range waiting {
		r := heartbeatResult{err: err}
		if err == nil {
			r.answer = m.Answers[i].Answer
			if code := m.Answers[i].Code; code != base.CodeOK {
				r.err = base.Errorf(code, "send heartbeat", "the replica did not answer: %s", code)
			}
		}
		c <- r
	}
}
