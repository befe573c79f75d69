package segment

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/eastguard/eastguard/internal/header"
)

// retimed is e with another MaxTimestamp in its header.
func retimed(e *Entry, ms int64) *Entry {
	h, err := header.Parse(e.Bytes)
	if err != nil {
		panic(err)
	}
	h.MaxTimestamp = ms
	c := *e
	c.Bytes = append([]byte(nil), e.Bytes...)
	c.MaxTimestamp = ms
	h.Put(c.Bytes)
	header.Seal(c.Bytes)
	return &c
}

// resealed makes the checksums of as many pages right as b seems to hold.
func resealed(b []byte) []byte {
	b = append([]byte(nil), b...)
	for rest := b; len(rest) >= pageOverhead; {
		le := binary.LittleEndian
		size := pageOverhead + int64(le.Uint32(rest[48:]))*pageEntry + int64(le.Uint32(rest[52:]))*4
		if size > int64(len(rest)) {
			break
		}
		le.PutUint32(rest[size-4:], crc32.Checksum(rest[:size-4], castagnoli))
		rest = rest[size:]
	}
	return b
}
