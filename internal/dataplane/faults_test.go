package dataplane

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// faultSeeds are how many random lives of a team are tried.
func faultSeeds() int64 {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return 300
	}
	return 3
}

// Whatever breaks, two nodes at a time: every acked record is on every replica of its segment.
func TestRandomFaults(t *testing.T) {
	for seed := range faultSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			config := base.TopicConfig{SegmentBytes: 20_000, SegmentAge: time.Hour}
			teamBubble(t, teamOptions{nodes: 5, fsync: time.Millisecond, config: config}, func(t *testing.T, m *team) {
				live(t, m, rand.New(rand.NewSource(seed)))
			})
		})
	}
}

func live(t *testing.T, m *team, rng *rand.Rand) {
	m.net.latency = time.Duration(rng.Intn(3)) * time.Millisecond
	var writers []*writer
	var writing sync.WaitGroup
	for i := range 3 {
		ref := base.RangeRef{Topic: testTopic, Range: base.RangeID(10 + i)}
		m.coord.create(ref, "n1", "n2", "n3")
		w := m.writer(ref, int64(1000*(i+1)), 200, 8)
		writers = append(writers, w)
		writing.Go(func() { w.write(0, 300) })
	}
	ended := make(chan struct{})
	go func() { writing.Wait(); close(ended) }()
	for quiet := false; !quiet; {
		select {
		case <-ended:
			quiet = true
		case <-time.After(time.Duration(rng.Intn(200)) * time.Millisecond):
			m.mishap(rng, writers)
		}
	}
	time.Sleep(10 * time.Second)
	for _, w := range writers {
		require.Len(t, w.acked, 300)
		w.check()
	}
}

// mishap breaks something and mends it again, before the next.
func (m *team) mishap(rng *rand.Rand, writers []*writer) {
	a, b := rng.Intn(5), rng.Intn(4)
	if b >= a {
		b++
	}
	one, other := base.NodeID(fmt.Sprintf("n%d", a+1)), base.NodeID(fmt.Sprintf("n%d", b+1))
	pause := time.Duration(rng.Intn(120)) * time.Millisecond
	switch rng.Intn(5) {
	case 0:
		m.crash(writers, pause, one)
	case 4:
		m.crash(writers, pause, one, other)
	case 1:
		m.net.cut(one, other)
		time.Sleep(pause)
		m.net.heal(one, other)
	case 2:
		m.net.silence(one, other, true)
		time.Sleep(10 * pause)
		m.net.silence(one, other, false)
	case 3: // a leader is taken for dead
		w := writers[rng.Intn(len(writers))]
		m.coord.recover(w.ref)
	}
}

// crash kills nodes, has the coordinator notice, and starts them again.
func (m *team) crash(writers []*writer, pause time.Duration, nodes ...base.NodeID) {
	for _, node := range nodes {
		m.members[node].kill()
	}
	for _, w := range writers {
		if last := m.coord.last(w.ref); slices.Contains(nodes, last.Leader().Node) {
			m.coord.recover(w.ref)
		}
	}
	time.Sleep(pause)
	for _, node := range nodes {
		m.members[node].start(time.Millisecond)
	}
	for _, w := range writers { // what they had never heard of
		m.coord.tell(m.coord.last(w.ref))
	}
}
