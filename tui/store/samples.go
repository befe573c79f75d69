package store

import (
	"slices"
	"time"
)

const historySamples = 900

// sample writes one sample for each second that has passed.
func (s *Store) sample() {
	h := &s.samples
	second := s.time.Truncate(time.Second)
	if h.End.IsZero() {
		h.End = second
	}
	if !second.After(h.End) {
		return
	}
	passed := int(second.Sub(h.End) / time.Second)
	for i := max(passed-historySamples, 0); i < passed; i++ {
		s.sampleOne(h, h.End.Add(time.Duration(i+1)*time.Second))
	}
	h.End = second
	s.sampled = true
}

// sampleOne adds up what the nodes told that are heard at that second.
func (s *Store) sampleOne(h *History, second time.Time) {
	in, out, inRecords, outRecords, ack, fsync := -1.0, -1.0, -1.0, -1.0, -1.0, -1.0
	heard := false
	for _, id := range s.sortedNodes() {
		n := s.nodes.get(id)
		if n.countedAt.IsZero() || second.Sub(n.Heard) > StaleAfter {
			continue
		}
		if !heard {
			heard = true
			in, out, inRecords, outRecords, ack, fsync = 0, 0, 0, 0, 0, 0
		}
		in, out = in+float64(n.Raw.InBytesPerSec), out+float64(n.Raw.OutBytesPerSec)
		inRecords, outRecords = inRecords+float64(n.Raw.InRecordsPerSec), outRecords+float64(n.Raw.OutRecordsPerSec)
		ack, fsync = max(ack, float64(n.Raw.Ack.P99Us)/1000), max(fsync, float64(n.Raw.Fsync.P99Us)/1000)
	}
	h.InBytes, h.OutBytes = push(h.InBytes, in, historySamples), push(h.OutBytes, out, historySamples)
	h.InRecords, h.OutRecords = push(h.InRecords, inRecords, historySamples), push(h.OutRecords, outRecords, historySamples)
	h.AckP99, h.FsyncP99 = push(h.AckP99, ack, historySamples), push(h.FsyncP99, fsync, historySamples)
}

// clipped is a history that another store can go on with.
func (h History) clipped() History {
	for _, s := range []*Series{&h.InBytes, &h.OutBytes, &h.InRecords, &h.OutRecords, &h.AckP99, &h.FsyncP99} {
		*s = clip(*s)
	}
	return h
}

func clip(s Series) Series { return slices.Clip(s) }
