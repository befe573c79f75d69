package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

var codecs = []Codec{header.None, header.LZ4, header.Zstd}

// sample is what testdata/kafka-python-*.batch hold; see gen.py there.
func sample() []Record {
	return []Record{
		{Key: []byte("user123"), Value: []byte("Hello EastGuard!"), TimestampMs: 1_700_000_000_000, Headers: []Header{
			{Key: "trace", Value: []byte("abc")}, {Key: "null"}, {Key: "empty", Value: []byte{}},
		}},
		{Value: []byte("no key"), TimestampMs: 1_700_000_000_005, Offset: 1},
		{Key: []byte{}, Value: []byte{}, TimestampMs: 1_699_999_999_000, Offset: 2},
		{Key: []byte("tombstone"), TimestampMs: 1_700_000_000_300, Offset: 3},
		{
			Key: []byte("big"), Value: bytes.Repeat([]byte("x"), 5000), TimestampMs: 1_700_000_000_300, Offset: 4,
			Headers: []Header{{Key: "é", Value: []byte{0, 0xff}}},
		},
	}
}

func build(t testing.TB, codec Codec, records []Record) []byte {
	b := NewBuilder(codec, 0)
	for _, r := range records {
		b.Append(r)
	}
	require.Equal(t, len(records), b.Len())
	batch, err := b.Build(nil, 4711, 3, 17)
	require.NoError(t, err)
	if codec == header.None {
		require.Len(t, batch, b.Size())
	}
	return batch
}

func readAll(t testing.TB, r *Reader, batch []byte) []Record {
	require.NoError(t, r.Reset(batch))
	var records []Record
	for rec, ok := r.Next(); ok; rec, ok = r.Next() {
		records = append(records, rec)
	}
	require.NoError(t, r.Err())
	return records
}

// What another implementation (kafka-python 3.0) has built we read, and without compression, which every
// implementation is free to do in its own way, we build the same bytes.
func TestInteroperatesWithKafka(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			theirs, err := os.ReadFile(fmt.Sprintf("testdata/kafka-python-%s.batch", codec))
			require.NoError(t, err)
			r := NewReader(1 << 20)
			require.Empty(t, cmp.Diff(sample(), readAll(t, r, theirs)))
			require.Equal(t, int64(4711), r.Header().ProducerID)
			require.Equal(t, codec, r.Header().Codec())

			ours := build(t, codec, sample())
			if codec == header.None {
				require.Equal(t, theirs, ours)
			}
			require.Empty(t, cmp.Diff(sample(), readAll(t, r, ours)))
		})
	}
}

func genRecord() *rapid.Generator[Record] {
	data := rapid.OneOf(
		rapid.Just[[]byte](nil), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 1, 200),
		rapid.Custom(func(t *rapid.T) []byte { return make([]byte, rapid.IntRange(0, 9000).Draw(t, "n")) }),
	)
	return rapid.Custom(func(t *rapid.T) Record {
		r := Record{
			Key: data.Draw(t, "key"), Value: data.Draw(t, "value"),
			TimestampMs: rapid.OneOf(rapid.Int64Range(0, 1<<42), rapid.Int64Range(-5, 5)).Draw(t, "time"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{Key: rapid.StringN(0, 10, 40).Draw(t, "hkey"), Value: data.Draw(t, "hvalue")})
		}
		return r
	})
}

func TestRoundTrip(t *testing.T) {
	reader := NewReader(64 << 20)
	builders := map[Codec]*Builder{}
	for _, c := range codecs {
		builders[c] = NewBuilder(c, 0)
	}
	rapid.Check(t, func(t *rapid.T) {
		codec := rapid.SampledFrom(codecs).Draw(t, "codec")
		records := rapid.SliceOfN(genRecord(), 1, 30).Draw(t, "records")
		base := rapid.Int64Range(0, 1<<50).Draw(t, "base")
		b := builders[codec]
		b.Reset()
		for i := range records {
			records[i].Offset = base + int64(i)
			b.Append(records[i])
		}
		prefix := []byte("in front")
		batch, err := b.Build(prefix, header.NoProducer, -1, -1)
		if err != nil || !bytes.HasPrefix(batch, prefix) {
			t.Fatal(err)
		}
		batch = batch[len(prefix):]
		header.Patch(batch, base, 7)
		if err := reader.Reset(batch); err != nil {
			t.Fatal(err)
		}
		var got []Record
		for rec, ok := reader.Next(); ok; rec, ok = reader.Next() {
			got = append(got, rec)
		}
		if d := cmp.Diff(records, got); d != "" || reader.Err() != nil {
			t.Fatal(reader.Err(), d)
		}
	})
}

func TestTheSameRecordsBuildAgain(t *testing.T) {
	b := NewBuilder(header.None, 0)
	b.Append(Record{Value: []byte("v")})
	one, err := b.Build(nil, 1, 0, 0)
	require.NoError(t, err)
	two, err := b.Build(nil, 2, 0, 100)
	require.NoError(t, err)
	r := NewReader(0)
	require.Equal(t, readAll(t, r, one), readAll(t, r, two))
	require.Equal(t, int32(100), r.Header().BaseSequence)

	b.Reset()
	_, err = b.Build(nil, 1, 0, 0)
	require.ErrorIs(t, err, base.CodeInvalidArgument, "an empty batch")
}

func TestUnsupportedCodecs(t *testing.T) {
	b := NewBuilder(header.Gzip, 0)
	b.Append(Record{})
	_, err := b.Build(nil, -1, -1, -1)
	require.ErrorIs(t, err, base.CodeInvalidArgument)
}

func TestLogAppendTime(t *testing.T) {
	batch := build(t, header.None, sample())
	binary.BigEndian.PutUint16(batch[21:], uint16(header.AttrLogAppendTime))
	header.Seal(batch)
	for _, rec := range readAll(t, NewReader(0), batch) {
		require.Equal(t, int64(1_700_000_000_300), rec.TimestampMs)
	}
}

func TestDetachedRecordsStay(t *testing.T) {
	for _, codec := range codecs {
		r := NewReader(0)
		kept := readAll(t, r, build(t, codec, sample()))
		r.Detach()
		other := []Record{{Key: bytes.Repeat([]byte("y"), 6000), Value: []byte("other"), Headers: []Header{{Key: "z", Value: []byte("z")}}}}
		require.Empty(t, cmp.Diff(other, readAll(t, r, build(t, codec, other))))
		require.Empty(t, cmp.Diff(sample(), kept), codec)
	}
}

// A batch that unpacks to more than the limit is refused, and without allocating much more than the limit.
func TestDecodedSizeIsLimited(t *testing.T) {
	for _, codec := range []Codec{header.LZ4, header.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			bomb := build(t, codec, []Record{{Value: make([]byte, 64<<20)}})
			require.Less(t, len(bomb), 1<<20)
			r := NewReader(1 << 20)
			require.ErrorIs(t, r.Reset(bomb), base.CodeBatchTooLarge)
			_, ok := r.Next()
			require.False(t, ok)
			require.Error(t, r.Err())

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 10 {
				_ = r.Reset(bomb)
			}
			runtime.ReadMemStats(&after)
			grown := int64(after.TotalAlloc-before.TotalAlloc) / 10
			require.Less(t, grown, int64(8<<20), "bytes allocated for a bomb of 64 MiB")

			exact := build(t, codec, []Record{{Value: make([]byte, 1<<20-32)}})
			require.NoError(t, r.Reset(exact), "just within the limit")
		})
	}
}

// seal gives a batch without compression new record bytes.
func seal(batch, records []byte, n int) []byte {
	b := append(append([]byte(nil), batch[:header.Size]...), records...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-lengthEnd))
	binary.BigEndian.PutUint32(b[23:], uint32(n-1))
	binary.BigEndian.PutUint32(b[57:], uint32(n))
	header.Seal(b)
	return b
}

func TestRecordsThatLie(t *testing.T) {
	good := build(t, header.None, []Record{{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{Key: "h", Value: []byte("x")}}}})
	body := good[header.Size:]
	varint := func(v int64) []byte { return binary.AppendVarint(nil, v) }
	one := func(fields ...byte) []byte { return append(varint(int64(len(fields))), fields...) }
	for _, c := range []struct {
		name    string
		records []byte
		n       int
		want    string
	}{
		{"more records than there are", body, 2, "record 1 of 2: its length is wrong"},
		{"fewer", append(append([]byte(nil), body...), body...), 1, "bytes follow the last one"},
		{"cut", body[:len(body)-1], 1, "its length is wrong"},
		{"nothing", nil, 1, "its length is wrong"},
		{"negative length", varint(-1), 1, "its length is wrong"},
		{"huge length", varint(math.MaxInt64), 1, "its length is wrong"},
		{"endless varint", bytes.Repeat([]byte{0xff}, 20), 1, "its length is wrong"},
		{"empty record", one(), 1, "do not add up"},
		{"key beyond the record", one(0, 0, 0, 20, 'k'), 1, "do not add up"},
		{"key of length -2", one(0, 0, 0, 3, 0, 0), 1, "do not add up"},
		{"a byte too many", one(0, 0, 0, 1, 1, 0, 9), 1, "do not add up"},
		{"offset out of turn", one(0, 0, 2, 1, 1, 0), 1, "its offset is 1"},
		{"a header too many", one(0, 0, 0, 1, 1, 2), 1, "do not add up"},
		{"2^40 headers", one(append([]byte{0, 0, 0, 1, 1}, varint(1<<40)...)...), 1, "do not add up"},
		{"negative headers", one(0, 0, 0, 1, 1, 1), 1, "do not add up"},
		{"null header key", one(0, 0, 0, 1, 1, 2, 1, 1), 1, "do not add up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(0)
			require.NoError(t, r.Reset(seal(good, c.records, c.n)))
			for _, ok := r.Next(); ok; _, ok = r.Next() {
			}
			require.ErrorIs(t, r.Err(), base.CodeCorruptBatch)
			require.ErrorContains(t, r.Err(), c.want)
		})
	}
}

func TestACompressedBodyThatLies(t *testing.T) {
	for _, codec := range []Codec{header.LZ4, header.Zstd} {
		batch := build(t, codec, sample())
		for cut := header.Size; cut < len(batch); cut++ {
			b := seal(batch, batch[header.Size:cut], 5)
			r := NewReader(1 << 20)
			err := r.Reset(b)
			for _, ok := r.Next(); ok; _, ok = r.Next() {
			}
			if err == nil {
				err = r.Err()
			}
			// A cut that takes only the end mark of the stream leaves every record readable.
			if err != nil {
				require.ErrorIs(t, err, base.CodeCorruptBatch, "%s cut at %d", codec, cut)
			} else {
				require.Greater(t, cut, len(batch)-8, "%s cut at %d went unnoticed", codec, cut)
			}
		}
	}
}

func TestNothingAllocatesPerRecord(t *testing.T) {
	for _, codec := range codecs {
		b := NewBuilder(codec, 0)
		r := NewReader(0)
		rec := Record{Key: []byte("key"), Value: make([]byte, 90), Headers: []Header{{Key: "trace", Value: []byte("id")}}}
		var dst []byte
		allocs := testing.AllocsPerRun(20, func() {
			b.Reset()
			for range 1000 {
				b.Append(rec)
			}
			dst, _ = b.Build(dst[:0], -1, -1, -1)
			if r.Reset(dst) != nil {
				t.Fatal(r.Err())
			}
			for _, ok := r.Next(); ok; _, ok = r.Next() {
			}
		})
		require.Less(t, allocs, 30.0, "%s: allocations for 1,000 records", codec)
	}
}

func FuzzReader(f *testing.F) {
	for _, c := range codecs {
		f.Add(build(f, c, sample()), uint8(0))
		f.Add(build(f, c, sample()[:1]), uint8(c))
	}
	f.Add([]byte{}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, fix uint8) {
		if len(b) >= header.Size && fix > 0 {
			// Past the CRC, or the fuzzer would never get to the records.
			b = append([]byte(nil), b...)
			b[16] = header.Magic
			binary.BigEndian.PutUint16(b[21:], uint16(codecs[int(fix)%3]))
			binary.BigEndian.PutUint32(b[8:], uint32(len(b)-lengthEnd))
			header.Seal(b)
		}
		r := NewReader(1 << 20)
		if r.Reset(b) != nil {
			return
		}
		n := int32(0)
		again := NewBuilder(header.None, 0)
		for rec, ok := r.Next(); ok; rec, ok = r.Next() {
			again.Append(rec)
			n++
		}
		if r.Err() == nil && n != r.Header().Records {
			t.Fatalf("%d records read of %d", n, r.Header().Records)
		}
	})
}

func benchRecords(size, n int) []Record {
	rng := rand.NewChaCha8([32]byte{1})
	records := make([]Record, n)
	for i := range records {
		v := make([]byte, size-10)
		_, _ = rng.Read(v)
		records[i] = Record{Key: fmt.Appendf(nil, "user%06d", i), Value: v, TimestampMs: 1_700_000_000_000 + int64(i)}
	}
	return records
}

func BenchmarkBuild(b *testing.B) {
	for _, codec := range codecs {
		for _, size := range []int{100, 1024} {
			b.Run(fmt.Sprintf("%s/%d", codec, size), func(b *testing.B) {
				records := benchRecords(size, 1000)
				bld := NewBuilder(codec, 0)
				var dst []byte
				b.ReportAllocs()
				b.SetBytes(int64(size * len(records)))
				for b.Loop() {
					bld.Reset()
					for i := range records {
						bld.Append(records[i])
					}
					dst, _ = bld.Build(dst[:0], 1, 0, 0)
				}
				b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds()/1e6, "Mrec/s")
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, codec := range codecs {
		for _, size := range []int{100, 1024} {
			b.Run(fmt.Sprintf("%s/%d", codec, size), func(b *testing.B) {
				batch := build(b, codec, benchRecords(size, 1000))
				r := NewReader(0)
				b.ReportAllocs()
				b.SetBytes(int64(size * 1000))
				for b.Loop() {
					if err := r.Reset(batch); err != nil {
						b.Fatal(err)
					}
					n := 0
					for _, ok := r.Next(); ok; _, ok = r.Next() {
						n++
					}
					if n != 1000 {
						b.Fatal(r.Err())
					}
				}
				b.ReportMetric(float64(b.N*1000)/b.Elapsed().Seconds()/1e6, "Mrec/s")
			})
		}
	}
}

// TestHeadersAreLimited: an empty header is two bytes in a batch and many more in memory, so that the limit on the
// decoded bytes alone would let twenty times as much be allocated.
func TestHeadersAreLimited(t *testing.T) {
	const limit = 64 << 10
	most := int(limit / headerBytes)
	for name, tc := range map[string]struct {
		counts []int // headers of each record
		read   int
	}{
		"as many as may be":     {[]int{most}, 1},
		"one more":              {[]int{most + 1}, 0},
		"one more, over two":    {[]int{most / 2, most - most/2, 1}, 2},
		"each batch for itself": {[]int{most - 1, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			records := make([]Record, len(tc.counts))
			for i, n := range tc.counts {
				records[i].Headers = make([]Header, n)
			}
			batch := build(t, header.Zstd, records)
			r := NewReader(limit)
			for range 2 {
				require.Len(t, readUntilError(t, r, batch), tc.read)
				require.Equal(t, tc.read == len(records), r.Err() == nil)
				require.LessOrEqual(t, len(r.headers), most)
			}
			if tc.read < len(records) {
				require.ErrorIs(t, r.Err(), base.CodeCorruptBatch)
				require.ErrorContains(t, r.Err(), "headers")
			}
		})
	}
}

func readUntilError(t *testing.T, r *Reader, batch []byte) (records []Record) {
	require.NoError(t, r.Reset(batch))
	for rec, ok := r.Next(); ok; rec, ok = r.Next() {
		records = append(records, rec)
	}
	return records
}
