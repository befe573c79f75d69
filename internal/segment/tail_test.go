package segment

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/keyspace"
)

// TestTailAgainstASlice compares the tail with the plainest thing that could do its work.
func TestTailAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tail Tail
		var all []*Entry // all that was ever pushed
		evicted := 0
		end := func() int64 {
			if len(all) == 0 {
				return testSpec.Base
			}
			return all[len(all)-1].End
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 9).Draw(t, "n") {
					e := &Entry{
						Base: end(), End: end() + rapid.Int64Range(1, 3).Draw(t, "records"), Bytes: make([]byte, rapid.IntRange(1, 50).Draw(t, "bytes")),
						MaxTimestamp: rapid.Int64Range(0, 9).Draw(t, "ms"), Lo: rapid.Uint64Range(0, 9).Draw(t, "lo"),
					}
					e.Hi = e.Lo
					tail.Push(e)
					all = append(all, e)
				}
			},
			"evict": func(t *rapid.T) {
				n := rapid.IntRange(0, len(all)-evicted).Draw(t, "n")
				want := len(bytesOf(all[evicted : evicted+n]))
				got, bytes := tail.Evict(uint64(evicted + n))
				require.Equal(t, n, got)
				require.Equal(t, int64(want), bytes)
				evicted += n
			},
			"read": func(t *rapid.T) {
				off := rapid.Int64Range(testSpec.Base-1, end()+1).Draw(t, "off")
				limit := rapid.Int64Range(off, end()+1).Draw(t, "limit")
				maxBytes := rapid.IntRange(1, 200).Draw(t, "max")
				var span *keyspace.Span
				if rapid.Bool().Draw(t, "all keys") {
					span = &keyspace.Span{Start: 3, End: 7}
				}
				var want []*Entry
				next, bytes, ok := off, 0, false
				for _, e := range all[evicted:] {
					if e.End <= off || (!ok && e.Base > off) {
						continue
					}
					ok = true
					if e.End > limit || (bytes > 0 && bytes+len(e.Bytes) > maxBytes) {
						break
					}
					next = e.End
					if span == nil || span.Contains(e.Lo) {
						want = append(want, e)
						bytes += len(e.Bytes)
					}
				}
				got, found, gotOK := tail.Read(nil, off, limit, maxBytes, span)
				require.Equal(t, ok, gotOK)
				require.Equal(t, want, got)
				if ok {
					require.Equal(t, Found{Next: next, Bytes: bytes}, found)
				}
			},
			"from": func(t *rapid.T) {
				if len(all) == evicted {
					return
				}
				seq := rapid.IntRange(evicted, len(all)-1).Draw(t, "seq")
				got, next := tail.From(nil, uint64(seq), end(), 100)
				require.NotEmpty(t, got)
				require.Equal(t, all[seq:next], got)
			},
			"time": func(t *rapid.T) {
				from := rapid.Int64Range(testSpec.Base, end()).Draw(t, "from")
				limit := rapid.Int64Range(testSpec.Base, end()).Draw(t, "limit")
				ms := rapid.Int64Range(0, 10).Draw(t, "ms")
				var want *Entry
				resident := from >= limit
				for _, e := range all[evicted:] {
					if e.End > from && e.Base <= from {
						resident = true
					}
					if resident && e.End > from && e.End <= limit && e.MaxTimestamp >= ms && from < limit {
						want = e
						break
					}
				}
				got, ok := tail.FirstAtOrAfter(ms, from, limit)
				require.Equal(t, resident, ok)
				require.Equal(t, want, got)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(all)-evicted, tail.Len())
				require.Equal(t, uint64(evicted), tail.Head())
				require.Equal(t, uint64(len(all)), tail.Next())
			},
		})
	})
}

func TestCutTailKeepsWhatLiesBelow(t *testing.T) {
	var tail Tail
	for i := range int64(100) {
		tail.Push(&Entry{Base: i, End: i + 1, Bytes: []byte{1}})
	}
	tail.Evict(20)
	cut := func(end int64) int {
		n, bytes := tail.Cut(end)
		require.Equal(t, int64(n), bytes)
		return n
	}
	require.Equal(t, 40, cut(60))
	require.Equal(t, 0, cut(60))
	got, _, ok := tail.Read(nil, 30, 60, 1<<20, nil)
	require.True(t, ok)
	require.Len(t, got, 30)
	require.Equal(t, 40, cut(0))
	require.Nil(t, tail.ring.Load(), "an empty tail holds nothing")
}

// TestReadersBesideAppenderAndEviction is for the race detector. A reader that knows the commit finds every entry below
// it, in the tail or, when it has been evicted, in what was written before: it never sees a hole or another entry.
func TestReadersBesideAppenderAndEviction(t *testing.T) {
	const n = 30_000
	var tail Tail
	var commit, written atomic.Int64
	var wg sync.WaitGroup
	for i := range 3 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			var buf []*Entry
			for c := int64(0); c < n; {
				c = commit.Load()
				if c == 0 {
					continue
				}
				off := max(0, c-1-rng.Int64N(200))
				got, _, ok := tail.Read(buf[:0], off, c, 1<<20, nil)
				if !ok {
					if w := written.Load(); w <= off {
						t.Errorf("offset %d is neither in the tail nor written (%d)", off, w)
						return
					}
					continue
				}
				for j, e := range got {
					if e.Base != off+int64(j) {
						t.Errorf("read %d at %d", e.Base, off+int64(j))
						return
					}
				}
				buf = got
			}
		})
	}
	rng := rand.New(rand.NewPCG(9, 1))
	for i := range int64(n) {
		tail.Push(&Entry{Base: i, End: i + 1, Bytes: []byte{1}})
		commit.Store(i + 1)
		if rng.IntN(50) == 0 {
			written.Store(max(written.Load(), i-int64(rng.IntN(60))))
			tail.Evict(uint64(written.Load()))
		}
	}
	wg.Wait()
}

func BenchmarkTailPush(b *testing.B) {
	var tail Tail
	b.ReportAllocs()
	for i := range b.N {
		tail.Push(&Entry{Base: int64(i), End: int64(i) + 1})
		if i%1024 == 1023 {
			tail.Evict(uint64(i - 512))
		}
	}
}

// A topic is deleted while the flusher is about to write its batches.
func TestFlusherMeetsATailThatWasDropped(t *testing.T) {
	var tail Tail
	tail.Push(&Entry{Bytes: []byte("a"), Base: 0, End: 1})
	tail.Push(&Entry{Bytes: []byte("b"), Base: 1, End: 2})
	tail.Evict(tail.Next())
	entries, seq := tail.From(nil, 1, 2, 100)
	if len(entries) != 0 || seq != 1 {
		t.Fatalf("got %d entries, %d", len(entries), seq)
	}
}
