package header

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// batch makes a valid batch of n records whose bodies are junk, which the broker never looks at.
func batch(n int32, edit func(*Header)) []byte {
	body := make([]byte, 7*n)
	for i := range body {
		body[i] = byte(i)
	}
	h := Header{
		Length: int32(Size - lead + len(body)), Magic: Magic, LastOffsetDelta: n - 1, Records: n,
		FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_123,
		ProducerID: NoProducer, ProducerEpoch: -1, BaseSequence: -1,
	}
	if edit != nil {
		edit(&h)
	}
	b := make([]byte, Size, Size+len(body))
	h.Put(b)
	b = append(b, body...)
	Seal(b)
	return b
}

func TestFieldsLieWhereKafkaHasThem(t *testing.T) {
	b, err := hex.DecodeString("" +
		"0102030405060708" + // base offset
		"00000040" + // length: 64
		"00000007" + // leader epoch
		"02" + // magic
		"deadbeef" + // crc
		"000c" + // attributes: zstd, log append time
		"00000004" + // last offset delta
		"0000018bcfe56800" + // first timestamp
		"0000018bcfe5687b" + // max timestamp
		"1122334455667788" + // producer id
		"0009" + // producer epoch
		"00000100" + // base sequence
		"00000005") // records
	require.NoError(t, err)
	h, err := Parse(b)
	require.NoError(t, err)
	require.Equal(t, Header{
		BaseOffset: 0x0102030405060708, Length: 64, Epoch: 7, Magic: 2, CRC: 0xdeadbeef, Attributes: 12,
		LastOffsetDelta: 4, FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_123,
		ProducerID: 0x1122334455667788, ProducerEpoch: 9, BaseSequence: 256, Records: 5,
	}, h)
	require.Equal(t, 76, h.Size())
	require.Equal(t, int64(0x0102030405060708+5), h.End())
	require.Equal(t, Zstd, h.Codec())
	require.True(t, h.LogAppendTime())
	require.Equal(t, int32(260), h.LastSequence())

	again := make([]byte, Size)
	h.Put(again)
	require.Equal(t, b, again)
}

// The batch was written by kafka-python 3.0, an implementation that shares nothing with this one.
func TestABatchOfAnotherImplementation(t *testing.T) {
	b, err := os.ReadFile("testdata/kafka-python-none.batch")
	require.NoError(t, err)
	h, err := Check(b, 0)
	require.NoError(t, err)
	require.Equal(t, Header{
		Length: int32(len(b) - lead), Magic: Magic, CRC: 0x04477ca9, LastOffsetDelta: 4, Records: 5,
		FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_300,
		ProducerID: 4711, ProducerEpoch: 3, BaseSequence: 17,
	}, h)
}

func TestPutIsTheInverseOfParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{
			BaseOffset: rapid.Int64().Draw(t, "base"), Length: rapid.Int32Range(Size-lead, math.MaxInt32-lead).Draw(t, "length"),
			Epoch: rapid.Int32().Draw(t, "epoch"), Magic: Magic, CRC: rapid.Uint32().Draw(t, "crc"),
			Attributes: rapid.Int16().Draw(t, "attributes"), LastOffsetDelta: rapid.Int32().Draw(t, "delta"),
			FirstTimestamp: rapid.Int64().Draw(t, "first"), MaxTimestamp: rapid.Int64().Draw(t, "max"),
			ProducerID: rapid.Int64().Draw(t, "pid"), ProducerEpoch: rapid.Int16().Draw(t, "pepoch"),
			BaseSequence: rapid.Int32().Draw(t, "seq"), Records: rapid.Int32().Draw(t, "records"),
		}
		b := make([]byte, Size)
		h.Put(b)
		got, err := Parse(b)
		if err != nil || got != h {
			t.Fatalf("got %+v, %v; want %+v", got, err, h)
		}
	})
}

func TestCheckAcceptsAndPatchKeepsTheCRC(t *testing.T) {
	b := batch(3, func(h *Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 42, 1, 100 })
	h, err := Check(b, len(b))
	require.NoError(t, err)
	require.Equal(t, int32(3), h.Records)

	Patch(b, 1_000_000_007, 12)
	h, err = Check(b, 0)
	require.NoError(t, err, "the patched fields lie outside the crc")
	require.Equal(t, int64(1_000_000_007), h.BaseOffset)
	require.Equal(t, int32(12), h.Epoch)
	require.Equal(t, int64(1_000_000_010), h.End())
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() []byte
		want base.Code
		text string
	}{
		{"nothing", func() []byte { return nil }, base.CodeCorruptBatch, "too few"},
		{"less than a header", func() []byte { return batch(1, nil)[:Size-1] }, base.CodeCorruptBatch, "too few"},
		{"cut", func() []byte { b := batch(1, nil); return b[:len(b)-1] }, base.CodeCorruptBatch, "states 68 bytes, 67 arrived"},
		{"two batches", func() []byte { return append(batch(1, nil), batch(1, nil)...) }, base.CodeCorruptBatch, "arrived"},
		{"magic 1", func() []byte { return batch(1, func(h *Header) { h.Magic = 1 }) }, base.CodeCorruptBatch, "magic is 1"},
		{"negative length", func() []byte { return batch(1, func(h *Header) { h.Length = -1 }) }, base.CodeCorruptBatch, "length field of -1"},
		{"length below a header", func() []byte { return batch(1, func(h *Header) { h.Length = 48 }) }, base.CodeCorruptBatch, "length field of 48"},
		{"no records", func() []byte { return batch(1, func(h *Header) { h.Records, h.LastOffsetDelta = 0, -1 }) }, base.CodeCorruptBatch, "0 records"},
		{"negative records", func() []byte { return batch(1, func(h *Header) { h.Records, h.LastOffsetDelta = -5, -6 }) }, base.CodeCorruptBatch, "-5 records"},
		{"offsets with holes", func() []byte { return batch(2, func(h *Header) { h.LastOffsetDelta = 2 }) }, base.CodeCorruptBatch, "dense"},
		{"gzip", func() []byte { return batch(1, func(h *Header) { h.Attributes = int16(Gzip) }) }, base.CodeCorruptBatch, "gzip is not accepted"},
		{"snappy", func() []byte { return batch(1, func(h *Header) { h.Attributes = int16(Snappy) }) }, base.CodeCorruptBatch, "snappy is not accepted"},
		{"codec 7", func() []byte { return batch(1, func(h *Header) { h.Attributes = 7 }) }, base.CodeCorruptBatch, "codec_7 is not accepted"},
		{"transactional", func() []byte { return batch(1, func(h *Header) { h.Attributes = AttrTransactional }) }, base.CodeCorruptBatch, "transactional"},
		{"control", func() []byte { return batch(1, func(h *Header) { h.Attributes = AttrControl }) }, base.CodeCorruptBatch, "control"},
		{"unknown attribute", func() []byte { return batch(1, func(h *Header) { h.Attributes = math.MinInt16 }) }, base.CodeCorruptBatch, "0x8000"},
		{"producer below -1", func() []byte { return batch(1, func(h *Header) { h.ProducerID = -2 }) }, base.CodeCorruptBatch, "producer id -2"},
		{"producer without sequence", func() []byte { return batch(1, func(h *Header) { h.ProducerID, h.ProducerEpoch = 1, 0 }) }, base.CodeCorruptBatch, "sequence -1"},
		{"producer without epoch", func() []byte { return batch(1, func(h *Header) { h.ProducerID, h.BaseSequence = 1, 0 }) }, base.CodeCorruptBatch, "epoch -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Check(c.make(), 0)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
	b := batch(1, nil)
	_, err := Check(b, len(b)-1)
	require.ErrorIs(t, err, base.CodeBatchTooLarge)
}

// Every bit that the broker does not own is covered: by a rule on its field or by the CRC.
func TestCheckFindsEveryFlippedBit(t *testing.T) {
	good := batch(2, nil)
	for bit := range len(good) * 8 {
		at := bit / 8
		if at < atLength || atEpoch <= at && at < atMagic {
			continue // base offset and leader epoch are the broker's to write
		}
		b := append([]byte(nil), good...)
		b[at] ^= 1 << (bit % 8)
		_, err := Check(b, 0)
		require.ErrorIs(t, err, base.CodeCorruptBatch, "bit %d of byte %d", bit%8, at)
	}
}

func TestSequencesWrap(t *testing.T) {
	h := Header{BaseSequence: math.MaxInt32, LastOffsetDelta: 1}
	require.Equal(t, int32(0), h.LastSequence())
	h.LastOffsetDelta = 0
	require.Equal(t, int32(math.MaxInt32), h.LastSequence())
}

func TestCodecs(t *testing.T) {
	for _, c := range []Codec{None, LZ4, Zstd} {
		got, err := ParseCodec(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
		require.True(t, c.Accepted())
	}
	for _, name := range []string{"gzip", "snappy", "ZSTD", "codec_7"} {
		_, err := ParseCodec(name)
		require.ErrorIs(t, err, base.CodeInvalidArgument, name)
	}
	require.False(t, Codec(7).Accepted())
}

func TestNothingAllocates(t *testing.T) {
	b := batch(10, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if h, err := Check(b, len(b)); err != nil || h.Records != 10 {
			t.Fatal(h, err)
		}
		Patch(b, 5, 6)
	}))
}

func FuzzCheck(f *testing.F) {
	f.Add(batch(1, nil))
	f.Add(batch(3, func(h *Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 1, 2, 3 }))
	f.Add(batch(1, func(h *Header) { h.Attributes = int16(LZ4) })[:Size])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Check(b, 1<<20)
		if err != nil {
			return
		}
		if h.Size() != len(b) || h.Records < 1 || h.End()-h.BaseOffset != int64(h.Records) {
			t.Fatalf("accepted %+v of %d bytes", h, len(b))
		}
		Patch(b, 99, 3)
		if again, err := Check(b, 0); err != nil || binary.BigEndian.Uint64(b) != 99 || again.Epoch != 3 {
			t.Fatalf("patched: %+v, %v", again, err)
		}
	})
}

func BenchmarkCheck1MiB(b *testing.B) {
	buf := batch(1<<20/7, nil)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(buf, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	buf := batch(1, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCut(t *testing.T) {
	a, b := batch(1, nil), batch(2, nil)
	run := append(append([]byte(nil), a...), b...)
	got, rest, err := Cut(run)
	require.NoError(t, err)
	require.Equal(t, a, got)
	require.Equal(t, len(got), cap(got), "an append must not reach the next batch")
	got, rest, err = Cut(rest)
	require.NoError(t, err)
	require.Equal(t, b, got)
	require.Empty(t, rest)

	for _, part := range [][]byte{nil, a[:Size-1], a[:len(a)-1]} {
		_, rest, err := Cut(part)
		require.ErrorIs(t, err, base.CodeCorruptBatch)
		require.Equal(t, part, rest)
	}
}

func TestAdmitRefusesMoreRecordsThanFit(t *testing.T) {
	_, err := Admit(batch(1, nil), 0)
	require.NoError(t, err)
	lying := batch(1, func(h *Header) { h.Records, h.LastOffsetDelta = 2, 1 }) // its body has seven bytes, one record's
	_, err = Check(lying, 0)
	require.NoError(t, err, "stored by an earlier version, it is read")
	_, err = Admit(lying, 0)
	require.ErrorIs(t, err, base.CodeCorruptBatch)
	require.ErrorContains(t, err, "2 records in 7 bytes")
	_, err = Admit(batch(1, func(h *Header) { h.Records, h.LastOffsetDelta, h.Attributes = 2, 1, int16(LZ4) }), 0)
	require.NoError(t, err, "what is compressed can be small")
	_, err = Admit(lying, 10)
	require.ErrorIs(t, err, base.CodeBatchTooLarge)
}
