package seal

// milestone is something that a search must come by at least once, or it proves less than it says.
type milestone uint8

const (
	ackedInSuccessor  milestone = 1 << iota // producers go on behind the seal
	ackedBySeal                             // the committed end covers what the leader had not committed
	ackedBehindSeal                         // a leader acks below an end that it does not know of yet
	tailReplayed                            // a leader gives the successor what was pending
	sealedByRestarted                       // no replica ran unbroken, and the end was found all the same
	shortCopy                               // an intact copy ends below the committed end, and was not counted
	refused                                 // a follower refuses a leader
	allMilestones     = 1<<iota - 1
)

func (m *model) pass(stone milestone) { m.passed |= stone }

// acked notes that a leader acks an offset to a producer; by its own commit, or because the committed end covers it.
func (r *run) acked(seg, offset int, payload uint8, byCommit bool) {
	g := &r.w.ghosts
	if r.isLossy(seg) && offset >= int(r.segment(&r.w, seg).End) {
		return // it is on record that such acks are worth nothing
	}
	r.see(seg, offset, payload, "acked")
	if !byCommit {
		r.pass(ackedBySeal)
		return
	}
	if seg > 0 {
		r.pass(ackedInSuccessor)
	}
	if r.segment(&r.w, seg).End >= 0 {
		r.pass(ackedBehindSeal)
	}
	if other := g.acked[offset]; other != 0 && other != uint8(seg+1) {
		r.fail("I7: s%d and s%d both ack offset %d", other, seg+1, offset)
	}
	g.acked[offset] = uint8(seg + 1)
}

// readable notes that a node shows its copy of a segment to readers, up to a commit.
func (r *run) readable(at, seg, commit int) {
	s := r.segment(&r.w, seg)
	c := r.w.nodes[at].copyOf(seg, r.w.nodes[at].n)
	for offset := int(s.Base); offset < commit; offset++ {
		if i := offset - int(s.Base); i < c.count {
			r.see(seg, offset, c.payloads[i], "read on "+string(nodeName(at)))
		}
	}
}

// see holds for ever what somebody was told of an offset.
func (r *run) see(seg, offset int, payload uint8, how string) {
	g := &r.w.ghosts
	if was := g.seen[offset]; was != 0 && was != payload {
		r.fail("I2: offset %d was p%d to somebody and is p%d, %s in s%d", offset, was, payload, how, seg+1)
	}
	g.seen[offset] = payload
}

// check looks at what must hold in every state.
func (r *run) check() {
	for seg := range r.segments(&r.w) {
		r.checkEnd(seg)
		r.checkCopies(seg)
	}
}

// checkEnd: what somebody was told lies below the committed end of the segment that holds it.
//
//	I1, I5: nothing that was acked or read lies above the end.
//	I7: nothing is acked above it afterwards either.
func (r *run) checkEnd(seg int) {
	s := r.segment(&r.w, seg)
	if s.End < 0 {
		return
	}
	for offset, by := range r.w.ghosts.acked {
		if by == uint8(seg+1) && int64(offset) >= s.End {
			r.fail("I1: offset %d was acked in s%d, which ends at %d", offset, seg+1, s.End)
		}
	}
}

// checkCopies: of replicas whose disk lost nothing,
//
//	I1: every one holds, durably, all that the leader acked; or, where the topic wants no more, in memory,
//	I2, I6: none holds below the committed end anything else than what somebody was told, or than another copy, and
//	I6: whoever was counted at the seal as a whole copy is one.
func (r *run) checkCopies(seg int) {
	s := r.segment(&r.w, seg)
	base, end := int(s.Base), int(s.End)
	whole := [maxRecords]uint8{}
	for i, at := range s.nodes {
		n := &r.w.nodes[at]
		if s.place(at, n.id) != i || n.rotted || n.gone&(1<<seg) != 0 {
			continue
		}
		c := n.copyOf(seg, n.durable)
		if r.bounds.memory {
			if n.boot != bootOf(s, i) {
				continue // what it held in memory it holds no more
			}
			c = n.copyOf(seg, n.n)
		}
		for offset, by := range r.w.ghosts.acked {
			if by == uint8(seg+1) && (offset-base >= c.count || c.payloads[offset-base] != r.w.ghosts.seen[offset]) {
				r.fail("I1: offset %d was acked in s%d and %s does not hold it", offset, seg+1, nodeName(at))
			}
		}
		if end < 0 {
			continue
		}
		for offset := base; offset < min(end, base+c.count); offset++ {
			p := c.payloads[offset-base]
			if seen := r.w.ghosts.seen[offset]; seen != 0 && seen != p {
				r.fail("I2: %s holds p%d at offset %d of s%d, which is p%d", nodeName(at), p, offset, seg+1, seen)
			}
			if whole[offset] != 0 && whole[offset] != p {
				r.fail("I6: two copies of s%d differ at offset %d", seg+1, offset)
			}
			whole[offset] = p
		}
		if base+c.count >= end {
			continue
		}
		r.pass(shortCopy)
		if r.w.ghosts.counted[seg]&(1<<at) != 0 {
			r.fail("I6: s%d ends at %d and the unbroken copy of %s, which was counted, at %d", seg+1, end, nodeName(at), base+c.count)
		}
	}
}

func (r *run) isLossy(seg int) bool { return r.w.ghosts.lossy&(1<<seg) != 0 }

// recordLoss notes that whoever was told of offsets at or above an end has been told in vain.
func (r *run) recordLoss(seg, end int) {
	g := &r.w.ghosts
	g.lossy |= 1 << seg
	clear(g.seen[end:])
	clear(g.acked[end:])
}
