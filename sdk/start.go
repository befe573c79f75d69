package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Start is a place to begin reading: Earliest, Latest, AtOffset, AtPositions or AtTime.
type Start interface{ applyStart(*startSpec) }

type startKind uint8

const (
	startEarliest startKind = iota
	startLatest
	startTime
	startPositions
)

// startSpec is a Start resolved into data.
type startSpec struct {
	kind      startKind
	timeMs    int64
	positions []Position // an empty topic means each topic read
}

type startFunc func(*startSpec)

func (f startFunc) applyStart(s *startSpec) { f(s) }

// Earliest begins at the first record each range still has.
func Earliest() Start { return startFunc(func(s *startSpec) { *s = startSpec{kind: startEarliest} }) }

// Latest begins behind the last record of each range; ranges sealed by then are finished, later ones are read
// from their first record.
func Latest() Start { return startFunc(func(s *startSpec) { *s = startSpec{kind: startLatest} }) }

// AtTime begins, in each range, at the first record appended at or after t; a range with none begins at its end.
func AtTime(t time.Time) Start {
	return startFunc(func(s *startSpec) { *s = startSpec{kind: startTime, timeMs: t.UnixMilli()} })
}

// AtOffset begins in range r at offset; other ranges begin at their first record. Several may be given.
func AtOffset(r RangeID, offset int64) Start {
	return AtPositions(Position{Range: r, Offset: offset})
}

// AtPositions begins at each position given; ranges not named begin at their first record. A position without a
// topic is for a consumer of one topic.
func AtPositions(positions ...Position) Start {
	return startFunc(func(s *startSpec) {
		if s.kind != startPositions {
			*s = startSpec{kind: startPositions}
		}
		s.positions = append(s.positions, positions...)
	})
}

func (s *startSpec) validate(topics map[string]bool) error {
	const op = "new consumer"
	for i, p := range s.positions {
		switch {
		case p.Topic == "" && len(topics) != 1:
			return base.Errorf(base.CodeInvalidArgument, op, "the start position of range %s names no topic, and the consumer reads several", p.Range)
		case p.Topic == "":
			for t := range topics {
				s.positions[i].Topic = t
			}
		case !topics[p.Topic]:
			return base.Errorf(base.CodeInvalidArgument, op, "start position %s is of a topic that is not read", p)
		}
		if p.Offset < 0 {
			return base.Errorf(base.CodeInvalidArgument, op, "an offset cannot be negative: %s", p)
		}
	}
	return nil
}

// position is the offset given for a range, if any.
func (s *startSpec) position(topic string, r RangeID) (int64, bool) {
	for _, p := range s.positions {
		if p.Topic == topic && p.Range == r {
			return p.Offset, true
		}
	}
	return 0, false
}
