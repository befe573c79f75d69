package vfs

import (
	"maps"
	"math/rand"
	"slices"
)

// directory is the names a directory holds now, and those a crash certainly leaves.
type directory struct {
	names   map[string]*node
	synced  map[string]*node
	renames [][2]string // since the last sync: each pair survives a crash together or not at all
}

func newDirectory() *directory {
	return &directory{names: map[string]*node{}, synced: map[string]*node{}}
}

func (d *directory) sync() {
	d.synced = maps.Clone(d.names)
	d.renames = nil
}

func (n *node) syncTree() {
	if n.dir == nil {
		n.sync()
		return
	}
	n.dir.sync()
	for _, child := range n.dir.names {
		child.syncTree()
	}
}

// CrashClone returns what a power failure at this moment might leave, as a file system of its own in which all of
// it is durable. Everything synced is there. Of what was not synced, each 4 KiB page, each file size and each
// directory entry is there with probability keepUnsynced, all drawn from rng; now and then a page is torn at its
// 512-byte sectors. The two names of a rename stay together. Locks and open files are gone.
func (m *Mem) CrashClone(rng *rand.Rand, keepUnsynced float64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &crash{rng: rng, keep: keepUnsynced, made: map[*node]*node{}}
	return m.cloneWith(c.node)
}

// Snapshot returns a copy of the file system, with its memory of what is synced: a process that was killed finds
// this when it starts again, and power may fail after that.
func (m *Mem) Snapshot() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &snapshot{made: map[*node]*node{}}
	return m.cloneWith(s.node)
}

func (m *Mem) cloneWith(clone func(*node) *node) *Mem {
	c := &Mem{root: clone(m.root), locked: map[string]bool{}, capacity: m.capacity}
	seen := map[*node]bool{}
	c.root.visit(func(n *node) {
		n.links++
		if !seen[n] {
			seen[n] = true
			c.used += n.now.size
		}
	})
	return c
}

// visit calls f for each name below n.
func (n *node) visit(f func(*node)) {
	for _, child := range n.dir.names {
		f(child)
		if child.dir != nil {
			child.visit(f)
		}
	}
}

type crash struct {
	rng  *rand.Rand
	keep float64
	made map[*node]*node // a file that has two names after the crash is still one file
}

func (c *crash) node(n *node) *node {
	if made := c.made[n]; made != nil {
		return made
	}
	made := &node{modTime: n.modTime}
	c.made[n] = made
	if n.dir != nil {
		made.dir = c.directory(n.dir)
		return made
	}
	made.now = c.contents(n)
	made.synced = made.now.share()
	made.dirty = map[int]struct{}{}
	return made
}

func (c *crash) contents(n *node) image {
	im := n.synced.share()
	size := im.size
	if n.now.size != size && c.rng.Float64() < c.keep {
		size = n.now.size
	}
	for _, i := range slices.Sorted(maps.Keys(n.dirty)) {
		if c.rng.Float64() >= c.keep {
			continue
		}
		p := n.now.page(i)
		p.share()
		if c.keep < 1 && c.rng.Intn(8) == 0 {
			p = c.torn(im.page(i), p)
		}
		im.setPage(i, p)
	}
	im.size = max(im.size, n.now.size) // the pages kept may reach as far
	im.cut(size)
	return im
}

// torn is a page of which some sectors were written.
func (c *crash) torn(before, after *page) *page {
	t := &page{}
	for at := 0; at < pageSize; at += sectorSize {
		from := before
		if c.rng.Intn(2) == 0 {
			from = after
		}
		if from != nil {
			copy(t.data[at:at+sectorSize], from.data[at:])
		}
	}
	return t
}

func (c *crash) directory(d *directory) *directory {
	names := maps.Clone(d.synced)
	for _, group := range d.unsyncedGroups() {
		if c.rng.Float64() >= c.keep {
			continue
		}
		for _, name := range group {
			if n := d.names[name]; n != nil {
				names[name] = n
			} else {
				delete(names, name)
			}
		}
	}
	made := newDirectory()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		made.names[name] = c.node(names[name])
	}
	made.sync()
	return made
}

// unsyncedGroups lists the names that differ from what is synced, those that renames tie together in one group,
// in a fixed order.
func (d *directory) unsyncedGroups() [][]string {
	leader := map[string]string{}
	var find func(string) string
	find = func(name string) string {
		if up, ok := leader[name]; ok && up != name {
			return find(up)
		}
		return name
	}
	for _, r := range d.renames {
		leader[find(r[0])] = find(r[1])
	}
	all := maps.Clone(d.synced)
	maps.Copy(all, d.names)
	groups := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d.names[name] != d.synced[name] {
			groups[find(name)] = append(groups[find(name)], name)
		}
	}
	var list [][]string
	for _, lead := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, groups[lead])
	}
	return list
}

type snapshot struct {
	made map[*node]*node
}

func (s *snapshot) node(n *node) *node {
	if made := s.made[n]; made != nil {
		return made
	}
	made := &node{modTime: n.modTime}
	s.made[n] = made
	if n.dir == nil {
		made.now, made.synced, made.dirty = n.now.share(), n.synced.share(), maps.Clone(n.dirty)
		return made
	}
	made.dir = newDirectory()
	for name, child := range n.dir.names {
		made.dir.names[name] = s.node(child)
	}
	for name, child := range n.dir.synced {
		made.dir.synced[name] = s.node(child)
	}
	made.dir.renames = slices.Clone(n.dir.renames)
	return made
}
