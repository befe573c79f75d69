package store

import (
	"bytes"
	"io"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

// Messages are kept as the brokers speak, in CBOR: their parts have the short names of the protocol. It takes whatever a
// log says, texts that are no UTF-8 too.
var (
	writing = must(cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC}.EncMode())
	reading = must(cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode())
)

func must[M any](m M, err error) M {
	if err != nil {
		panic(err) // options are constants of this package
	}
	return m
}

// packWindow is how far back the packer looks.
const packWindow = 512 << 10

func newPacker() *zstd.Encoder {
	return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true)))
}

func unpacker(packed []byte) (*zstd.Decoder, error) {
	return zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
}

// tape reads messages that were packed, one by one: there may be many, and all that is wanted of them is what they lead to.
type tape struct {
	unpacked *zstd.Decoder
	messages *cbor.Decoder
	left     int // that can be read
}

// playing reads count messages, but for the first ones.
func playing(packed []byte, count, skip int) (*tape, error) {
	r, err := unpacker(packed)
	if err != nil {
		return nil, err
	}
	t := &tape{unpacked: r, messages: reading.NewDecoder(r), left: count}
	for range skip {
		if err := t.messages.Skip(); err != nil {
			t.end()
			return nil, err
		}
		t.left--
	}
	return t, nil
}

// next is the next message; io.EOF after the last.
func (t *tape) next() (m Message, err error) {
	if t == nil || t.left == 0 {
		return m, io.EOF
	}
	t.left--
	return m, t.messages.Decode(&m)
}

func (t *tape) end() {
	if t != nil {
		t.unpacked.Close()
	}
}
