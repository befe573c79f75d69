package header

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
)

// Codec is the compression of a batch's records, as Kafka numbers it.
type Codec uint8

// The codecs that Kafka has. Only None, LZ4 and Zstd are accepted.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Accepted reports whether the broker takes batches of this codec.
func (c Codec) Accepted() bool { return c == None || c == LZ4 || c == Zstd }

// String prints the name that topic settings and flags use.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec_%d", uint8(c))
}

// ParseCodec reads none, lz4 or zstd; the empty string is none.
func ParseCodec(s string) (Codec, error) {
	switch s {
	case "", "none":
		return None, nil
	case "lz4":
		return LZ4, nil
	case "zstd":
		return Zstd, nil
	}
	return None, base.Errorf(base.CodeInvalidArgument, "parse compression", "%q is not one of none, lz4, zstd", s)
}
