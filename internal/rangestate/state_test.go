package rangestate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// feed appends a batch that must be accepted.
func feed(t testing.TB, s *State, id int64, epoch int16, seq, records int32) {
	t.Helper()
	h := batchOf(id, epoch, seq, records)
	require.Equal(t, Accept, s.Check(h).Kind)
	s.Append(h, s.End(), 77)
}

func TestRetryOfAPendingBatchIsADuplicate(t *testing.T) {
	s := New()
	feed(t, s, 9, 0, 0, 2)
	feed(t, s, 9, 0, 2, 3)
	require.Equal(t, Verdict{Kind: Duplicate, Base: 2, AppendMs: 77}, s.Check(batchOf(9, 0, 2, 3)))
	s.Commit(5)
	require.Equal(t, Verdict{Kind: Duplicate, Base: 2, AppendMs: 77}, s.Check(batchOf(9, 0, 2, 3)))
	require.Equal(t, OutOfOrder, s.Check(batchOf(9, 0, 2, 2)).Kind, "another batch under the same first sequence")
}

func TestSealBelowTheTailForgetsThePendingBatches(t *testing.T) {
	s := New()
	feed(t, s, 9, 0, 0, 1)
	s.Commit(1)
	feed(t, s, 9, 0, 1, 1)
	feed(t, s, 9, 1, 0, 1)
	s.Rollback(1)
	epoch, next, ok := s.Producer(9)
	require.True(t, ok)
	require.Equal(t, int16(0), epoch)
	require.Equal(t, int32(1), next)
}

func TestSequenceWraps(t *testing.T) {
	s := New()
	feed(t, s, 9, 0, 0, math.MaxInt32)
	feed(t, s, 9, 0, math.MaxInt32, 4)
	_, next, _ := s.Producer(9)
	require.Equal(t, int32(3), next)
	feed(t, s, 9, 0, 3, 1)
}

func TestWindowHoldsFive(t *testing.T) {
	s := New()
	for seq := range int32(6) {
		feed(t, s, 9, 0, seq, 1)
		s.Commit(s.End())
	}
	require.Equal(t, OutOfOrder, s.Check(batchOf(9, 0, 0, 1)).Kind)
	require.Equal(t, Duplicate, s.Check(batchOf(9, 0, 1, 1)).Kind)
}

func TestProducersAreBounded(t *testing.T) {
	s := New()
	for id := range int64(MaxProducers + 1) {
		feed(t, s, id, 0, 0, 1)
	}
	require.Equal(t, Duplicate, s.Check(batchOf(0, 0, 0, 1)).Kind, "nothing is dropped before what drops it is committed")
	s.Commit(s.End())
	require.Equal(t, MaxProducers, s.Len())
	require.True(t, s.ForgotAny())
	require.Equal(t, UnknownProducer, s.Check(batchOf(0, 0, 1, 1)).Kind)
	require.Equal(t, Accept, s.Check(batchOf(1, 0, 1, 1)).Kind)
	b := s.Encode()
	require.LessOrEqual(t, len(b), 700_000)
	d, err := Decode(b)
	require.NoError(t, err)
	require.Equal(t, b, d.Encode())
}

func TestExpiryKeepsTheLastDay(t *testing.T) {
	s := New()
	s.Append(batchOf(1, 0, 0, 1), 0, 1000)
	s.Append(batchOf(2, 0, 0, 1), 1, 2000)
	s.Commit(2)
	s.Expire(1000 + TTLMs)
	require.Equal(t, 2, s.Len())
	s.Expire(1001 + TTLMs)
	require.Equal(t, 1, s.Len())
	require.True(t, s.ForgotAny())
}

func TestBatchesWithoutProducerLeaveNoTrace(t *testing.T) {
	s := New()
	s.Append(batchOf(header.NoProducer, -1, -1, 5), 0, 1)
	s.Commit(5)
	require.True(t, s.Empty())
	require.Equal(t, int64(5), s.End())
	require.Equal(t, New().Checksum(), s.Checksum())
}

func TestEveryFlipAndTruncationIsDetected(t *testing.T) {
	s := New()
	feed(t, s, 1, 0, 0, 1)
	feed(t, s, 2, 3, 0, 1)
	s.Commit(1)
	b := s.Encode()
	for i := range len(b) * 8 {
		c := append([]byte(nil), b...)
		c[i/8] ^= 1 << (i % 8)
		_, err := Decode(c)
		require.ErrorIs(t, err, base.CodeCorruptData, "bit %d", i)
	}
	for n := range b {
		_, err := Decode(b[:n])
		require.ErrorIs(t, err, base.CodeCorruptData, "%d bytes", n)
	}
}

func FuzzDecode(f *testing.F) {
	s := New()
	s.Append(batchOf(1, 0, 0, 1), 0, 1)
	s.Append(batchOf(2, 0, 0, 1), 1, 1)
	s.Commit(1)
	f.Add(s.Encode())
	f.Add(New().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the checksum made right the fuzzer reaches what lies behind it.
		if len(b) >= headBytes+crcBytes {
			b = seal(b[:len(b)-crcBytes])
		}
		s, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(s.Encode())
		require.NoError(t, err)
		require.Equal(t, s.Encode(), again.Encode())
	})
}

func BenchmarkCheckAppendCommit(b *testing.B) {
	s := New()
	b.ReportAllocs()
	for i := range b.N {
		h := batchOf(int64(i%8), 0, int32(i/8)&math.MaxInt32, 1)
		if s.Check(h).Kind != Accept {
			b.Fatal("refused")
		}
		s.Append(h, int64(i), int64(i))
		if i%4 == 3 {
			s.Commit(int64(i + 1))
		}
	}
}
