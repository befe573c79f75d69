package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// compress appends src to dst in the given codec.
func compress(dst, src []byte, codec Codec, level int) ([]byte, error) {
	switch codec {
	case header.LZ4:
		return compressLZ4(dst, src, level)
	case header.Zstd:
		enc, err := zstdEncoder(level)
		if err != nil {
			return dst, err
		}
		return enc.EncodeAll(src, dst), nil
	case header.None, header.Gzip, header.Snappy:
	}
	return dst, base.Errorf(base.CodeInvalidArgument, "compress batch", "compression %s is not supported", codec)
}

// decompress returns src decoded, in the memory of buf where that is large enough. It fails before it allocates
// more than limit bytes.
func decompress(buf, src []byte, codec Codec, limit int) ([]byte, error) {
	switch codec {
	case header.LZ4:
		return decompressLZ4(buf, src, limit)
	case header.Zstd:
		dec, err := zstdDecoder(limit)
		if err != nil {
			return nil, err
		}
		out, err := dec.DecodeAll(src, buf[:0])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
			return nil, tooLarge(limit)
		}
		return out, err
	case header.None, header.Gzip, header.Snappy:
	}
	return nil, fmt.Errorf("compression %s is not supported", codec)
}

func tooLarge(limit int) error {
	return base.Errorf(base.CodeBatchTooLarge, "decompress batch", "the records take more than %d bytes", limit)
}

// LZ4 in the frame format, with blocks as small as Kafka's own: a reader allocates what a block may hold.
var lz4Writers = sync.Pool{New: func() any { return lz4.NewWriter(nil) }}

var lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}

func compressLZ4(dst, src []byte, level int) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	w := lz4Writers.Get().(*lz4.Writer)
	defer lz4Writers.Put(w)
	w.Reset(out)
	err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(lz4Level(level)))
	if err != nil {
		return dst, err
	}
	if _, err := w.Write(src); err != nil {
		return dst, err
	}
	if err := w.Close(); err != nil {
		return dst, err
	}
	return out.Bytes(), nil
}

// lz4Level maps 1 to 9 to the library's own constants; anything below is its fast mode.
func lz4Level(level int) lz4.CompressionLevel {
	if level < 1 {
		return lz4.Fast
	}
	return lz4.CompressionLevel(1 << (8 + min(level, 9)))
}

func decompressLZ4(buf, src []byte, limit int) ([]byte, error) {
	r := lz4Readers.Get().(*lz4.Reader)
	defer lz4Readers.Put(r)
	r.Reset(bytes.NewReader(src))
	buf = buf[:0]
	for idle := 0; idle < 100; idle++ { // a reader may return nothing, but not for ever
		if len(buf) == cap(buf) {
			buf = grow(buf, len(src), limit)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case n > 0:
			idle = 0
		}
	}
	return nil, io.ErrNoProgress
}

// grow makes room: first for a ratio of four, then twice what there was, never for more than one byte above limit,
// which is what shows that the limit is exceeded.
func grow(buf []byte, compressed, limit int) []byte {
	n := min(max(2*cap(buf), 4*compressed, 4<<10), limit+1)
	larger := make([]byte, len(buf), n)
	copy(larger, buf)
	return larger
}

// One zstd encoder for each level and one decoder for each limit serve everybody: EncodeAll and DecodeAll may be
// called concurrently and keep their state inside.
var (
	zstdEncoders sync.Map // zstd.EncoderLevel to *zstd.Encoder
	zstdDecoders sync.Map // int to *zstd.Decoder
)

func zstdEncoder(level int) (*zstd.Encoder, error) {
	l := zstd.SpeedDefault
	if level > 0 {
		l = zstd.EncoderLevelFromZstd(level)
	}
	if enc, ok := zstdEncoders.Load(l); ok {
		return enc.(*zstd.Encoder), nil
	}
	// A window of 1 MiB holds a batch and costs a fraction of the default's memory; the batch has a CRC already.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	kept, _ := zstdEncoders.LoadOrStore(l, enc)
	return kept.(*zstd.Encoder), nil
}

func zstdDecoder(limit int) (*zstd.Decoder, error) {
	if dec, ok := zstdDecoders.Load(limit); ok {
		return dec.(*zstd.Decoder), nil
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(limit)), zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	kept, _ := zstdDecoders.LoadOrStore(limit, dec)
	return kept.(*zstd.Decoder), nil
}
