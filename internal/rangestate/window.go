package rangestate

// Appended is one committed batch of a producer, as its window remembers it.
type Appended struct {
	FirstSequence, LastSequence int32 // both inclusive
	Base                        int64 // offset of the first record
}

// Window lists a producer's last committed batches, oldest first, and the epoch they were written in.
func (s *State) Window(id int64) (epoch int16, batches []Appended, ok bool) {
	p := s.producers[id]
	if p == nil {
		return 0, nil, false
	}
	for i := range p.n {
		w := &p.window[i]
		batches = append(batches, Appended{FirstSequence: w.first, LastSequence: w.last, Base: w.base})
	}
	return p.epoch, batches, true
}
