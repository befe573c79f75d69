package sim

import (
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/config"
)

// One broker, whose process and whose power go away under load. What its clients were told holds.
func TestOneNode(t *testing.T) {
	alone := func(_ int, cfg *config.Config) { cfg.JoinSeedNodes = nil }
	Run(t, Options{Seed: 1, Config: alone}, func(t *testing.T, c *Cluster) {
		c.Start(1)
		load := c.StartLoad(LoadOptions{Streams: StreamOptions{Topics: 2}})
		n := c.Node(1)
		for _, end := range []func(){n.Kill, n.Crash, n.Stop, n.Crash, n.Kill} {
			time.Sleep(5 * time.Second)
			end()
			c.Check()
			time.Sleep(time.Second)
			n.Start()
			c.Await(10*time.Second, "n1 serves", n.Serving)
			c.Check()
		}
		load.Stop()
		c.Quiet(10 * time.Second)
		load.Verify()
	})
}
