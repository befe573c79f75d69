package seal

import (
	"fmt"
	"strings"
)

const (
	replicas    = 3
	maxSegments = 3
	maxRecords  = 4  // offsets of the range
	logSize     = 14 // records of one node's log
)

// entry is one record of a node's log: its kind, the segment it is about, and an argument.
type entry uint8

type entryKind uint8

const (
	openEntry  entryKind = iota + 1 // the node holds the segment from here on
	batchEntry                      // arg: the payload; its offset follows from what stands before it
	fenceEntry                      // nothing of the segment's epoch or below is acked behind this
	sealEntry                       // arg: the committed end
)

func record(kind entryKind, seg, arg int) entry {
	return entry(uint8(kind-1)<<6 | uint8(seg)<<4 | uint8(arg))
}

func (e entry) kind() entryKind { return entryKind(e>>6) + 1 }
func (e entry) seg() int        { return int(e >> 4 & 3) }
func (e entry) arg() int        { return int(e & 15) }

func (e entry) String() string {
	switch e.kind() {
	case openEntry:
		return fmt.Sprintf("open s%d", e.seg()+1)
	case batchEntry:
		return fmt.Sprintf("s%d:p%d", e.seg()+1, e.arg())
	case fenceEntry:
		return fmt.Sprintf("fence s%d", e.seg()+1)
	case sealEntry:
		return fmt.Sprintf("seal s%d at %d", e.seg()+1, e.arg())
	}
	return "?"
}

// disk is a node's log. What lies above durable is lost by a crash, or is not: the page cache decides.
type disk struct {
	log     [logSize]entry
	n       uint8
	durable uint8
	id      uint8 // counts the disks that the node has had
	rotted  bool  // it silently lost durable records
	gone    uint8 // bit a segment: its file is missing, though the log lists it
}

func (d *disk) append(e entry) {
	d.log[d.n] = e
	d.n++
}

func (d *disk) full() bool { return int(d.n)+5 > logSize } // a step appends a few at most

// cut drops all records from n on.
func (d *disk) cut(n uint8) {
	clear(d.log[n:])
	d.n, d.durable = n, min(d.durable, n)
}

// copyOf is what a log's first n records say of one segment.
type copyOf struct {
	listed   bool
	payloads [maxRecords]uint8
	count    int // of payloads
	fenced   bool
	sealed   int // its end, -1 while it has none
}

func (d *disk) copyOf(seg int, n uint8) copyOf {
	c := copyOf{sealed: -1}
	for _, e := range d.log[:n] {
		if e.kind() == fenceEntry && e.seg() >= seg {
			c.fenced = true // of this epoch or a later one
		}
		if e.seg() != seg {
			continue
		}
		switch e.kind() {
		case openEntry:
			c = copyOf{listed: true, fenced: c.fenced, sealed: -1}
		case batchEntry:
			c.payloads[c.count] = uint8(e.arg())
			c.count++
		case fenceEntry:
		case sealEntry:
			c.sealed = e.arg()
		}
	}
	return c
}

// fence is the highest segment fenced or sealed by the log, counted from 1; 0 is none.
func (d *disk) fence() uint8 {
	var high uint8
	for _, e := range d.log[:d.n] {
		if e.kind() == fenceEntry || e.kind() == sealEntry {
			high = max(high, uint8(e.seg()+1))
		}
	}
	return high
}

// node is one broker: a disk and a process. A process that is not there for a while is one to which nothing arrives.
type node struct {
	disk
	boot   uint8 // counts the starts that this disk knows of
	spent  faults
	fenced uint8 // as disk.fence, from the moment of the call on; memory

	// What the process knows of each segment: ids of cores. At most one of a pair is set.
	lead   [maxSegments]coreID
	follow [maxSegments]coreID
}

// coreID names an interned core; 0 is none.
type coreID uint16

const (
	opening coreID = 1 // a leader whose open record is on its way to the disk
	retired coreID = 2 // a leader that had nothing to do and was dropped, with all it knew
)

// running reports whether a leader is there to be called.
func running(id coreID) bool { return id > retired }

func (n *node) String() string {
	var b strings.Builder
	for i, e := range n.log[:n.n] {
		if i == int(n.durable) {
			b.WriteString(" |")
		}
		b.WriteString(" " + e.String())
	}
	if n.n == n.durable {
		b.WriteString(" |")
	}
	return b.String()
}

// faults counts what has happened to a node.
type faults struct{ crashes, rots, wipes, files uint8 }

// mayCrash reports whether what is not durable on a node may still be lost. Where it may not, a node syncs at once: an
// fsync that comes later is an ack that arrives later, and those do so anyway.
func (n *node) mayCrash(at int, b *bounds) bool {
	return n.spent.crashes < b.crashes[at] || n.spent.rots == 0 && b.rots[at] > 0
}
