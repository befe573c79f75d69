package wire

import (
	"encoding/binary"
	"fmt"
)

// The rules of hot messages: what stands behind the part a reader knows is ignored (a newer peer's addition),
// flag bits it does not know are refused in requests (they would change what is asked) and ignored in answers.

// need checks that b holds the fixed part of a message.
func need(b []byte, size int) error {
	if len(b) < size {
		return fmt.Errorf("%d bytes are too few, at least %d are needed", len(b), size)
	}
	return nil
}

// appendCount writes a number of entries and two zero bytes.
func appendCount(dst []byte, n int) []byte {
	if n > MaxFetchRanges {
		panic(fmt.Sprintf("wire: %d entries, at most %d are allowed", n, MaxFetchRanges)) // the caller's loop is wrong
	}
	return binary.BigEndian.AppendUint16(append(dst, byte(n>>8), byte(n)), 0)
}

// count reads a number of entries and checks it against the bytes that are there, before anything is allocated.
func count(b []byte, rest, size int) (int, error) {
	n := int(binary.BigEndian.Uint16(b))
	if n > MaxFetchRanges {
		return 0, fmt.Errorf("%d entries, at most %d are allowed", n, MaxFetchRanges)
	}
	if n*size > rest {
		return 0, fmt.Errorf("%d entries of %d bytes do not fit in %d", n, size, rest)
	}
	return n, nil
}

// room returns a slice of n elements, reusing s when it is large enough, so that a message that is decoded again
// and again does not allocate.
func room[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n)
}
