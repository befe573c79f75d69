package sim

import (
	"testing"
	"time"
)

// Three nodes lose their power at the same moment and come back. Nothing that was acknowledged is gone.
func TestWholeClusterRestart(t *testing.T) {
	Run(t, Options{Seed: 1, Shards: 8}, func(t *testing.T, c *Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{Streams: StreamOptions{Topics: 2}})
		time.Sleep(10 * time.Second)
		for range 3 {
			for _, n := range c.Nodes() {
				n.Crash()
			}
			time.Sleep(time.Second)
			for _, n := range c.Nodes() {
				n.Start()
			}
			c.Await(10*time.Second, "all nodes serve", c.allServe)
			t.Logf("quiet %v after the restart", c.Settled(10*time.Second))
			time.Sleep(5 * time.Second)
			c.Check()
		}
		load.Stop()
		c.Quiet(10 * time.Second)
		load.Verify()
	})
}
