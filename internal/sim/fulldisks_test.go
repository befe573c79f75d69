package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/config"
)

// Two of three disks are full: the third alone is too few for a segment. The range waits for room, and opens no segment
// after the other that would end with its first batch.
func TestTwoOfThreeDisksAreFull(t *testing.T) {
	reserve := func(_ int, cfg *config.Config) { cfg.ReserveBytes = 4 << 20 }
	Run(t, Options{Seed: 1, Config: reserve}, func(t *testing.T, c *Cluster) {
		o := steady
		o.ValueBytes, o.Burst = 64<<10, 4
		load := c.written(3, o)
		before := c.active(load)
		full := c.replicas(before)[1:]
		for _, n := range full {
			n.FillDisk(0)
		}
		for range 10 {
			time.Sleep(6 * time.Second)
			c.Check()
		}
		// Their numbers tell: empty ones leave nothing behind. Each shard counts in steps of the number of shards.
		opened := int(c.active(load).ID-before.ID) / c.options.Shards
		require.LessOrEqual(t, opened, 5, "segments were opened")
		full[0].FreeDisk()
		load.Served(time.Minute)
		c.judged(load)
	})
}
