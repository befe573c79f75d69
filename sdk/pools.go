package sdk

import (
	"sync"

	"github.com/eastguard/eastguard/internal/record"
)

// maxPooled is the largest encoded batch that is kept: one big record must not make every batch big.
const maxPooled = 4 << 20

// pools keep what batches are made of from one batch to the next.
type pools struct {
	codec    Compression
	level    int
	batches  sync.Pool // *batch, with the memory of its last batch
	builders sync.Pool // *record.Builder
	encoded  sync.Pool // *[]byte
}

// batch is an empty one with a builder.
func (p *pools) batch() *batch {
	bt, _ := p.batches.Get().(*batch)
	if bt == nil {
		bt = new(batch)
	}
	bt.builder, _ = p.builders.Get().(*record.Builder)
	if bt.builder == nil {
		bt.builder = record.NewBuilder(p.codec, p.level)
	}
	bt.builder.Reset()
	return bt
}

// space is memory for an encoded batch of about n bytes.
func (p *pools) space(n int) []byte {
	if s, _ := p.encoded.Get().(*[]byte); s != nil && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]byte, 0, n)
}

// put takes a finished batch back. What a connection may still be reading is left to the garbage collector.
func (p *pools) put(bt *batch) {
	if bt.escaped {
		return
	}
	if bt.builder != nil {
		p.builders.Put(bt.builder)
	}
	if c := cap(bt.encoded); c > 0 && c <= maxPooled {
		s := bt.encoded[:0]
		p.encoded.Put(&s)
	}
	clear(bt.owed)
	*bt = batch{owed: bt.owed[:0], message: bt.message[:0]}
	p.batches.Put(bt)
}
