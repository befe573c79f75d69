package gossip

import (
	"github.com/eastguard/eastguard/internal/base"
)

// book remembers, for each node, the latest life that was buried and the one that is current. It decides which word
// about a life is still heard. It is a plain value: its owner locks.
type book struct {
	cluster base.ClusterID
	self    base.NodeID
	process process // ours
	life    life    // ours
	pages   map[base.NodeID]*page
}

type page struct {
	buried  life // everything up to here is dead
	life    life // the current one, or the latest that was
	process process
	address string // where gossip reaches it
}

// maxPages bounds the book against a cluster that mints node ids without end.
const maxPages = 1 << 16

// word is an alive message, as far as it matters here.
type word struct {
	id      base.NodeID
	life    life
	process process
	cluster base.ClusterID
	address string
}

// verdict is what the book says to a word: nothing, which admits it, or why not and whom to tell.
type verdict struct {
	veto   string
	buried *notice // tell a process that its life is buried
	taken  *notice // tell a process that another one of its NodeID stays
	fatal  bool    // that process is ourselves
}

// notice is a message to one process about one node.
type notice struct {
	to       string // a gossip address
	ID       base.NodeID
	Life     life      // Buried: the life that was refused
	Grave    life      // Buried: the latest that is dead
	From     string    // Buried: who says so
	Instance base.UUID // Taken: who must stop
	Winner   base.UUID // Taken: who stays
	Boot     uint64    // Taken: the winner's
}

func newBook(cluster base.ClusterID, self *Self) *book {
	return &book{
		cluster: cluster, self: self.Node, process: process{self.Boot, self.StartedMs, self.Instance}, life: life{Boot: self.Boot},
		pages: make(map[base.NodeID]*page),
	}
}

// admit decides on an alive message and remembers whom it admitted.
func (b *book) admit(w word) verdict {
	switch {
	case w.cluster != b.cluster:
		return verdict{veto: "foreign cluster"}
	case w.id == b.self:
		return b.admitSelf(w)
	}
	p := b.pages[w.id]
	if p == nil {
		if len(b.pages) >= maxPages {
			return verdict{veto: "too many nodes"}
		}
		p = &page{life: w.life, process: w.process, address: w.address}
		b.pages[w.id] = p
		return verdict{}
	}
	if w.life.compare(p.buried) <= 0 {
		return verdict{veto: "buried", buried: &notice{to: w.address, ID: w.id, Life: w.life, Grave: p.buried}}
	}
	if p.life.compare(p.buried) > 0 && p.process.Instance != w.process.Instance {
		if p.process.outranks(w.process) {
			return verdict{veto: "node id taken", taken: p.process.stop(w.id, w.process, w.address)}
		}
		if w.process.Boot == p.process.Boot { // a clone that came second but stays; a later boot is a plain restart
			loser := w.process.stop(w.id, p.process, p.address)
			if w.life == p.life { // memberlist keeps one address a name: it waits until the other's is buried
				return verdict{veto: "name in use", taken: loser}
			}
			*p = page{buried: p.buried, life: w.life, process: w.process, address: w.address}
			return verdict{taken: loser}
		}
	}
	if w.life.compare(p.life) < 0 {
		return verdict{veto: "superseded"}
	}
	p.life, p.process, p.address = w.life, w.process, w.address
	return verdict{}
}

// admitSelf judges a word about our own NodeID: ours, an echo of an earlier life, or somebody else who uses it.
func (b *book) admitSelf(w word) verdict {
	switch {
	case w.process.Instance == b.process.Instance && w.life == b.life:
		return verdict{}
	case w.process.Instance == b.process.Instance:
		return verdict{veto: "an earlier name of this process"}
	case b.process.outranks(w.process):
		return verdict{veto: "node id taken", taken: b.process.stop(w.id, w.process, w.address)}
	}
	return verdict{veto: "node id taken", taken: w.process.stop(w.id, b.process, ""), fatal: true}
}

// stop is the notice to a loser that p stays.
func (p process) stop(id base.NodeID, loser process, to string) *notice {
	return &notice{to: to, ID: id, Instance: loser.Instance, Winner: p.Instance, Boot: p.Boot}
}

// bury ends a life and all before it.
func (b *book) bury(id base.NodeID, l life) {
	p := b.pages[id]
	if id == b.self || p == nil {
		return
	}
	if l.compare(p.buried) > 0 {
		p.buried = l
	}
}

// isBuried reports whether a life is over.
func (b *book) isBuried(id base.NodeID, l life) bool {
	p := b.pages[id]
	return p != nil && l.compare(p.buried) <= 0
}

// rename answers a Buried about ourselves: the next life, whether there is one, and whether our very boot is dead.
func (b *book) rename(n *notice) (next life, ok, outdated bool) {
	switch {
	case n.ID != b.self || n.Life != b.life:
		return life{}, false, false // an earlier name of ours, or a process that had this address before us
	case n.Grave.Boot > b.life.Boot:
		return life{}, false, true
	}
	next = life{b.life.Boot, b.life.Rename + 1}
	if n.Grave.Boot == next.Boot && n.Grave.Rename >= next.Rename {
		next.Rename = n.Grave.Rename + 1
	}
	return next, true, false
}
