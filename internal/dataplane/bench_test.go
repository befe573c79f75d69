package dataplane

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/store"
)

// nullLog is durable at once and keeps nothing: what is left is the plane's own work.
type nullLog struct{}

func (nullLog) Append(_ base.SegmentID, b store.Batch, done func(int64, error)) error {
	done(b.Header.End(), nil)
	return nil
}
func (nullLog) Publish(base.SegmentID, int64) {}
func (nullLog) OpenSegment(_ store.SegmentSpec, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) ForceSeal(_ base.SegmentID, _ int64, _ base.Cause, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) HoldSealed(_ store.SegmentSpec, _ int64, _ base.Cause, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) Mend(base.SegmentID, []store.Batch) error { return nil }

func (nullLog) Seal(_ base.SegmentID, _ int64, _ base.Cause, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) DropSegments(_ base.RangeRef, _ []base.SegmentID, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) DropTopic(_ base.TopicID, done func(error)) error {
	done(nil)
	return nil
}

func (nullLog) Fence(_ base.RangeRef, _ base.Epoch, _ base.SegmentID, done func(store.FenceAnswer, error)) error {
	done(store.FenceAnswer{}, nil)
	return nil
}

func (nullLog) Info(base.SegmentID) (store.SegmentInfo, bool)      { return store.SegmentInfo{}, false }
func (nullLog) Segments(base.RangeRef) []store.SegmentInfo         { return nil }
func (nullLog) HeldState(base.SegmentID) (*rangestate.State, bool) { return rangestate.New(), true }

func (nullLog) RangeState(base.SegmentID) (*rangestate.State, error) {
	return rangestate.New(), nil
}

// appender returns a function that appends one batch of so many records and waits for its ack.
func benchAppender(t testing.TB, records int) func() {
	p := New(Options{Node: here.Node, Disk: here.Disk, Boot: boot, Log: nullLog{}})
	t.Cleanup(func() { _ = p.Close() })
	_, err := p.Tell(t.Context(), meta.Orders{Assignments: []meta.Assignment{assignment(1, 1, 0, 0, base.TopicConfig{SegmentBytes: 1 << 60, SegmentAge: 1 << 60})}})
	require.NoError(t, err)
	b := makeBatch(records, 42, 0, records*10)
	acked := false
	done := func(_ AppendResult, err error) {
		if err != nil {
			t.Error(err)
		}
		acked = true
	}
	seq := int32(0)
	return func() {
		h, _ := header.Parse(b)
		h.BaseSequence = seq
		h.Put(b)
		header.Seal(b)
		seq = (seq + int32(records)) & (1<<31 - 1)
		acked = false
		p.Append(AppendRequest{Ref: testRef, Bytes: b}, done)
		if !acked {
			t.Fatal("not acked on the same stack")
		}
	}
}

// Allocations are per batch: a hundred times the records cost not one more.
func TestAllocationsDoNotDependOnRecords(t *testing.T) {
	one := testing.AllocsPerRun(500, benchAppender(t, 1))
	many := testing.AllocsPerRun(500, benchAppender(t, 1000))
	require.Equal(t, one, many)
	require.LessOrEqual(t, one, 8.0)
}

func BenchmarkAppend(b *testing.B) {
	for _, records := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			appendOne := benchAppender(b, records)
			b.ReportAllocs()
			for b.Loop() {
				appendOne()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
		})
	}
}
