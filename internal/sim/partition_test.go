package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two of five nodes are cut off for five minutes, and come back by themselves.
func TestFiveMinutePartition(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		c.Start(5)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{Think: 3 * time.Second, Streams: StreamOptions{Topics: 1}})
		c.Partition(c.Nodes()[:3], c.Nodes()[3:])
		for range 10 {
			time.Sleep(30 * time.Second)
			c.Check()
		}
		c.Heal()
		load.Stop()
		t.Logf("quiet %v after the heal", c.Quiet(2*time.Minute))
		load.Verify()
	})
}

// Three empty nodes that are to found a cluster together do not see each other at first. Nobody founds one alone, and
// when they do see each other they found one.
func TestColdStartDuringPartition(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sides [][]int
	}{
		{"the lowest alone", [][]int{{1}, {2, 3}}},
		{"the highest alone", [][]int{{1, 2}, {3}}},
		{"nobody sees anybody", [][]int{{1}, {2}, {3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			Run(t, Options{Seed: 1, Expect: 3}, func(t *testing.T, c *Cluster) {
				var sides [][]*Node
				for range 3 {
					c.Add()
				}
				for _, side := range tc.sides {
					var nodes []*Node
					for _, i := range side {
						nodes = append(nodes, c.Node(i))
					}
					sides = append(sides, nodes)
				}
				c.Partition(sides...)
				for _, n := range c.Nodes() {
					n.Start()
				}
				for range 12 {
					time.Sleep(5 * time.Second)
					c.Check()
				}
				for _, n := range c.Nodes() {
					require.Nil(t, n.Ended(), n.Name)
					require.False(t, n.Serving(), "%s founded a cluster that needs three", n.Name)
				}
				c.Heal()
				t.Logf("founded %v after the heal", c.Quiet(30*time.Second))
			})
		})
	}
}

// Founders lose their power while they are at it, again and again. There is never a second cluster, and in the end
// there is one.
func TestFoundersCrash(t *testing.T) {
	for seed := range uint64(8) {
		Run(t, Options{Seed: seed, Expect: 3}, func(t *testing.T, c *Cluster) {
			for range 3 {
				c.Add().Start()
			}
			for range 6 {
				time.Sleep(time.Duration(c.Rand.Int64N(int64(100 * time.Millisecond))))
				c.Check()
				n := c.someRunning()
				n.Crash()
				n.Start()
			}
			c.Quiet(30 * time.Second)
		})
	}
}
