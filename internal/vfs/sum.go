package vfs

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// Small files that people may read are text, and end with a line that holds the checksum of what stands before it: a
// number with another digit is as good a number to whoever reads it.

const sumLine = "crc32c %08x\n"

// AppendSum ends a text, which is whole lines, with the line of its checksum.
func AppendSum(text []byte) []byte {
	return fmt.Appendf(text, sumLine, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// CutSum is the text without the line of its checksum. It is not ok when there is none, or when it is another one's.
func CutSum(b []byte) (text []byte, ok bool) {
	i := bytes.LastIndex(b, []byte("crc32c "))
	if i <= 0 {
		return nil, false
	}
	return b[:i], bytes.Equal(AppendSum(b[:i:i]), b)
}
