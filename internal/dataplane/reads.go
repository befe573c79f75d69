package dataplane

import "sync"

// A turn never waits for a disk's read: it may be that of a connection's reader, and a disk that is slow would hold up all
// that comes by that connection. What has to be read is read beside the turns, so many at once; more queue. An actor has
// one in there at a time, as a rule, so the queue is as long as there are ranges.

// maxReads is how many reads are under way at once: enough for any disk, and no crowd when one hangs.
const maxReads = 16

// reads are those that are under way, and those that wait for their turn.
type reads struct {
	mu      sync.Mutex
	queue   []func()
	running int
}

// read runs something that may wait for the disk, or reports that the plane is closing.
func (p *Plane) read(run func()) bool {
	if p.closing.Load() {
		return false
	}
	r := &p.reads
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, run)
	if r.running < maxReads {
		r.running++
		p.tasks.Go(p.reader)
	}
	return true
}

// reader reads until nothing is left to be read, or the plane closes: then nobody waits for it any more.
func (p *Plane) reader() {
	for {
		run := p.reads.next()
		if run == nil {
			return
		}
		if p.ctx.Err() == nil {
			run()
		}
	}
}

// next takes the oldest of the queue; nil, and one less that runs, when it is empty.
func (r *reads) next() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue = nil
		r.running--
		return nil
	}
	run := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	return run
}
