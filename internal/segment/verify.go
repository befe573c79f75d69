package segment

import (
	"fmt"
	"hash/crc32"
	"sync"
)

var blockBuffers = sync.Pool{New: func() any { return new([BlockBytes]byte) }}

// verify holds the blocks of [from, to) against their sums, those that were not since the file was opened. The last
// block of a growing file is held against the sum of what the view shows of it.
func (f *File) verify(v *view, from, to int64) error {
	for i := from / BlockBytes; i*BlockBytes < to; i++ {
		block := int(i)
		if block < len(v.s.full) {
			if v.verified.has(block) {
				continue
			}
			if err := f.verifyBlock(v, i, BlockBytes, v.s.full[block]); err != nil {
				return err
			}
			v.verified.set(block)
			continue
		}
		if v.partialOK.Load() {
			continue
		}
		if err := f.verifyBlock(v, i, v.Pos-i*BlockBytes, v.s.partial); err != nil {
			return err
		}
		v.partialOK.Store(true)
	}
	return nil
}

func (f *File) verifyBlock(v *view, i, n int64, want uint32) error {
	buf := blockBuffers.Get().(*[BlockBytes]byte)
	defer blockBuffers.Put(buf)
	b := buf[:n]
	if err := f.readFull(v, b, i*BlockBytes); err != nil {
		return err
	}
	if got := crc32.Checksum(b, castagnoli); got != want {
		return &DamageError{
			Path: f.path + LogSuffix, Pos: i * BlockBytes, Intact: f.intactBefore(v, i*BlockBytes),
			Detail: fmt.Sprintf("the block's crc is %#08x, %#08x was written", got, want),
		}
	}
	return nil
}

// Verify checks every block, those checked before too: the scrub.
func (f *File) Verify() error {
	v := f.view.Load()
	return f.verify(&view{Extent: v.Extent, x: v.x, s: v.s}, 0, v.Pos)
}
