package telemetry

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// shardCount spreads writers over cache lines: a power of two near the number of cores.
var shardCount = 1 << bits.Len(uint(min(runtime.GOMAXPROCS(0), 32)-1))

// Counter is a number that only grows. Writers on different cores mostly touch different cache lines.
type Counter struct {
	shards []shard
}

type shard struct {
	n atomic.Uint64
	_ [56]byte // the rest of the cache line
}

// NewCounter makes a counter that belongs to no registry.
func NewCounter() *Counter { return &Counter{shards: make([]shard, shardCount)} }

// Inc adds one.
func (c *Counter) Inc() { c.Add(1) }

// Add adds n.
func (c *Counter) Add(n uint64) {
	// rand's generator is per thread and costs about 2 ns; Go has no cheaper way to tell cores apart.
	c.shards[rand.Uint32()&uint32(len(c.shards)-1)].n.Add(n)
}

// Value is the sum of all adds that happened before the call.
func (c *Counter) Value() uint64 {
	var sum uint64
	for i := range c.shards {
		sum += c.shards[i].n.Load()
	}
	return sum
}

// Gauge is a number that goes up and down.
type Gauge struct{ n atomic.Int64 }

// Set replaces the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value is the present value.
func (g *Gauge) Value() int64 { return g.n.Load() }
