package sim

import (
	"strconv"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
)

// Topics of three replicas are written and read by several clients, their segments roll all the time, and nodes are
// killed, paused, cut off, and lose their power and their disks' good will. What was acked is on every replica, was read
// by all who read, once and in order, and nobody read what was not so.
func TestRecords(t *testing.T) {
	first, last := runs(t, recordRuns)
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			playRecords(t, seed, 0)
		})
	}
}

// playRecords plays what a seed alone decides: from three to seven nodes, topics of one to four ranges, and records that
// come slowly or as fast as they are acked.
func playRecords(t *testing.T, seed uint64, steps int) {
	o := Options{Seed: seed, Config: func(_ int, cfg *config.Config) { cfg.ReserveBytes = 1 << 20 }}
	nodes := 3 + int(seed%5)
	s := Script{Nodes: nodes, AtMost: nodes, Steps: 10 + int(seed%4), Longest: 5 * time.Second, Faults: recordFaults}
	if steps > 0 {
		s.Steps = steps
	}
	streams := StreamOptions{Topics: 2, Ranges: 1 << (seed % 3), Factor: 3, Writers: 2, Readers: 2, Every: 100 * time.Millisecond, Burst: 4, ValueBytes: 2 << 10, SegmentBytes: base.MinSegmentBytes}
	if seed%4 == 0 {
		streams.Every, streams.Burst, streams.ValueBytes = 20*time.Millisecond, 20, 4<<10 // a roll every few batches
	}
	Run(t, o, func(_ *testing.T, c *Cluster) { c.Play(s, LoadOptions{Clients: -1, Streams: streams}) })
}
