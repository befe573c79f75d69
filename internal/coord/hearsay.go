package coord

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

const (
	silentFor   = 2 * time.Second        // after which a leader that neither this node nor another replica hears is taken for gone
	wordHolds   = time.Second            // how long an answer is as good as a new one
	askingWhile = 500 * time.Millisecond // for one question
	maxWords    = 4096                   // that are kept; more are forgotten and asked for again
)

// hearsay is what other nodes say of a node that is not heard here. Each is asked once for all segments of all shards.
type hearsay struct {
	mu    sync.Mutex
	words map[question]*word
}

type question struct{ witness, of base.NodeID }

type word struct {
	at     time.Time // of the last answer; zero before the first
	silent time.Duration
	asking bool
}

// silent reports whether a witness has not heard a node for so long that it may be taken for gone. Where no fresh word
// is at hand the witness is asked, and the loops look again when it has answered.
func (c *Coord) silent(witness, of base.NodeID, now time.Time) bool {
	h := &c.hearsay
	h.mu.Lock()
	defer h.mu.Unlock()
	q := question{witness: witness, of: of}
	w := h.words[q]
	if w == nil {
		if len(h.words) >= maxWords {
			clear(h.words)
		}
		w = &word{}
		put(&h.words, q, w)
	}
	if fresh := !w.at.IsZero() && now.Sub(w.at) < wordHolds; fresh || w.asking {
		return fresh && w.silent >= silentFor
	}
	w.asking = true
	c.running.Go(func() { c.inquire(q, w) })
	return false
}

func (c *Coord) inquire(q question, w *word) {
	ctx, cancel := context.WithTimeout(c.ctx, askingWhile)
	defer cancel()
	silent, err := c.o.Nodes.Silence(ctx, q.witness, q.of)
	if err != nil {
		silent = 0 // who does not answer is no witness
	}
	c.hearsay.mu.Lock()
	w.at, w.silent, w.asking = time.Now(), silent, false
	c.hearsay.mu.Unlock()
	if silent > 0 {
		c.ViewChanged()
	}
}
