package gossip

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// post is what callbacks leave for the loop, which alone may call memberlist. Whoever has the agent's lock may use it.
type post struct {
	out    []*notice // to be sent
	told   map[string]time.Time
	buried *notice // to us: our name is dead
	fatal  error   // another process keeps our id
	update bool    // we describe ourselves anew
}

// One process is told one thing at most once a second: a refused life speaks up many times, and to everybody.
const (
	tellEvery = time.Second
	maxOut    = 1024
	maxTold   = 4096
)

func newPost() post { return post{told: make(map[string]time.Time)} }

// add queues what a verdict wants to be told; it reports whether the loop has something to do.
func (p *post) add(v verdict, now time.Time) bool {
	for _, n := range []*notice{v.buried, v.taken} {
		if n == nil || n.to == "" || len(p.out) >= maxOut {
			continue
		}
		key := n.to + n.Life.name(n.ID) + string(n.Instance[:])
		if now.Sub(p.told[key]) < tellEvery {
			continue
		}
		if len(p.told) >= maxTold {
			clear(p.told) // to forget costs a message told twice
		}
		p.told[key] = now
		p.out = append(p.out, n)
	}
	return len(p.out) > 0 || p.fatal != nil
}

func (p *post) fail(n *notice) {
	if p.fatal == nil {
		p.fatal = base.Errorf(base.CodeDenied, "join the membership",
			"another live process is node %s: its boot is %d, its instance %s", n.ID, n.Boot, n.Winner).
			WithHint("two processes may not share one data directory or a copy of it; give this one a directory and a node_id of its own")
	}
}

// take empties the post.
func (p *post) take() post {
	taken := *p
	p.out, p.buried, p.update = nil, nil, false
	return taken
}
