package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestAppendPublishReadRestart(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	var want []byte
	for i := range 50 {
		want = append(want, n.put(1, 1+i%3, 100*i)...)
	}
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000))
	require.NoError(t, n.checkpoint())
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000), "a checkpoint changes nothing for readers")
	n.restart()
	i, ok := n.Info(1)
	require.True(t, ok)
	require.Equal(t, i.DurableEnd, i.Commit, "the commit of the checkpoint can be proven")
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000))
	require.Zero(t, n.Recovery().Batches, "an orderly end leaves nothing to replay")
}

func TestNothingAboveTheCommitIsRead(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	b := makeBatch(1, 0, 0, 2, 10, header.NoProducer, 0)
	require.NoError(t, n.appendWait(1, b))
	r, err := n.Read(refOf(1), 0, 1000, nil)
	require.NoError(t, err)
	require.Empty(t, r.Parts)
	_, err = n.Read(refOf(1), 1, 1000, nil)
	require.ErrorIs(t, err, base.CodeBehind)
	n.Publish(1, 2)
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 0, 1000))
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 1, 1000), "the batch that holds the offset")
	n.Publish(1, 1)
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 0, 1000), "a commit never goes back")
}

func TestAppendIsHeldAgainstItsSegment(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	require.ErrorIs(t, n.appendWait(2, makeBatch(1, 3, 10, 1, 1, -1, 0)), base.CodeSegmentNotFound)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 11, 1, 1, -1, 0)), base.CodeInvalidArgument)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 4, 10, 1, 1, -1, 0)), base.CodeInvalidArgument)
	require.NoError(t, n.appendWait(1, makeBatch(1, 3, 10, 1, 1, -1, 0)))
}

func TestOpenSegmentIsIdempotent(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	n.openSegment(specOf(1, 3, 10))
	other := specOf(1, 3, 11)
	require.ErrorIs(t, n.OpenSegment(other, nil), base.CodePreconditionFailed)
	require.Len(t, n.Segments(refOf(1)), 1)
	n.restart()
	require.ErrorIs(t, n.OpenSegment(specOf(1, 3, 10), nil), base.CodeFenced, "a segment is appended to by the process that opened it")
	require.Len(t, n.All(), 1)
}

func TestSpanLeavesBatchesOut(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for i := range uint64(100) {
		b := makeBatch(1, 0, int64(i), 1, 5000, -1, 0)
		b.SpanLo, b.SpanHi = i<<32, i<<32+1
		require.NoError(t, n.appendWait(1, b))
		n.Publish(1, int64(i+1))
	}
	span := keyspace.Span{Start: 40 << 32, End: 42 << 32}
	total := func() (bytes int) {
		for off := int64(0); off < 100; {
			r, err := n.Read(refOf(1), off, 20_000, &span)
			require.NoError(t, err)
			require.Greater(t, r.Next, off)
			bytes += r.Bytes
			r.Release()
			off = r.Next
		}
		return bytes
	}
	require.Equal(t, 2*5061, total())
	require.NoError(t, n.checkpoint())
	n.restart()
	require.Less(t, total(), 5*5061)
	require.GreaterOrEqual(t, total(), 2*5061)
}

func TestErrorsAfterClose(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	require.NoError(t, n.Store.Close())
	require.NoError(t, n.Store.Close())
	nop := func(error) {}
	for name, err := range map[string]error{
		"append": n.Append(1, makeBatch(1, 0, 0, 1, 1, -1, 0), nil),
		"open":   n.OpenSegment(specOf(2, 0, 0), nop),
		"fence":  n.Fence(refOf(1), 0, 1, nil),
		"all":    n.FenceAllLed(nop),
		"seal":   n.Seal(1, 0, base.CauseAge, nop),
		"drop":   n.DropSegments(refOf(1), nil, nop),
		"topic":  n.DropTopic(topicA, nop),
	} {
		require.ErrorIs(t, err, base.CodeShuttingDown, fmt.Sprint(name))
	}
}

func TestRangesComeInPages(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	var want []base.RangeRef
	for i := range 23 {
		spec := specOf(base.SegmentID(i+1), 0, 0)
		spec.Ref = base.RangeRef{Topic: base.TopicID{byte(i * 37 % 5)}, Range: base.RangeID(i + 1)}
		want = append(want, spec.Ref)
		n.openSegment(spec)
	}
	slices.SortFunc(want, base.RangeRef.Compare)
	for _, limit := range []int{1, 4, 23, 100} {
		var got []base.RangeRef
		for from := (base.RangeRef{}); ; {
			page := n.Ranges(from, limit+1)
			got = append(got, page[:min(len(page), limit)]...)
			if len(page) <= limit {
				break
			}
			from = page[limit]
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
}
