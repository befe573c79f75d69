package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// clusterHealth runs every check. A check that cannot be made fails: not knowing is not being well.
func (s *Server) clusterHealth(ctx context.Context, _ wire.ClusterHealthRequest) (wire.ClusterHealthResponse, error) {
	resp := wire.ClusterHealthResponse{Cluster: s.id.Cluster, Observer: s.id.Node, ObservedMs: time.Now().UnixMilli()}
	view := s.view()
	for i := range view.Nodes {
		if view.Nodes[i].Liveness == topology.Alive {
			resp.Nodes++
		}
	}
	sums, missing := s.sums(ctx)
	resp.Checks = []wire.HealthCheck{
		s.checkNodes(view),
		s.checkShards(sums, missing),
		s.checkVoters(view, sums, missing),
		checkCover(sums, missing),
		checkCopies(sums, missing),
		s.checkDisk(),
		s.checkDamage(),
	}
	return resp, nil
}

func (s *Server) checkNodes(view topology.View) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG110", Name: "nodes are alive"}
	alive := 0
	for i := range view.Nodes {
		n := &view.Nodes[i]
		if n.Liveness == topology.Alive {
			alive++
			continue
		}
		if n.Standing != topology.Out {
			c.Result = wire.HealthFail
		}
	}
	c.Detail = fmt.Sprintf("%d of %d nodes alive", alive, len(view.Nodes))
	if alive == 0 {
		c.Result = wire.HealthFail
	}
	return c
}

// checkShards passes when every shard's leader has answered: whoever is only said to lead may be gone.
func (s *Server) checkShards(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG120", Name: "every shard has a leader"}
	c.Detail = fmt.Sprintf("%d of %d shards have a leader", len(sums), len(sums)+len(missing))
	if len(missing) > 0 || len(sums) == 0 {
		c.Result, c.Next = wire.HealthFail, "eg-cli shard list"
		c.Detail += unanswered(missing)
	}
	return c
}

// unanswered names the shards that a check knows nothing about.
func unanswered(missing []base.ShardID) string {
	if len(missing) == 0 {
		return ""
	}
	text := fmt.Sprintf("; no answer from %d shards:", len(missing))
	for i, shard := range missing {
		if i == mostNamed {
			return text + " …"
		}
		text += " " + shard.String()
	}
	return text
}

// mostNamed bounds what a check's sentence lists.
const mostNamed = 8

// checkVoters holds each shard's voters against how many it should have, and which by the ring.
func (s *Server) checkVoters(view topology.View, sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG123", Name: "every shard has its voters, caught up"}
	want := min(s.cfg.ShardVoters, view.Counted())
	short, behind, elsewhere := 0, 0, 0
	for _, sum := range sums {
		st := sum.Status
		if len(st.Voters) < want {
			short++
		}
		if st.Trails > mostTrail || st.State == "catching_up" {
			behind++
		}
		if intended := s.intendedVoters(st.ID); intended != nil && !sameNodes(intended, st.Voters) {
			elsewhere++
		}
	}
	c.Detail = fmt.Sprintf("%d of %d shards have %d voters", len(sums)-short, len(sums)+len(missing), want)
	switch {
	case short > 0 || len(missing) > 0 || len(sums) == 0:
		c.Result = wire.HealthFail
	case behind > 0 || elsewhere > 0:
		c.Result = wire.HealthWarn
	}
	if behind > 0 {
		c.Detail += fmt.Sprintf("; in %d one is behind", behind)
	}
	if elsewhere > 0 {
		c.Detail += fmt.Sprintf("; %d are on their way to where the ring wants them", elsewhere)
	}
	c.Detail += unanswered(missing)
	if c.Result != wire.HealthPass {
		c.Next = "eg-cli shard list"
	}
	return c
}

// mostTrail is how many entries a voter may lack and still count as caught up: those under way.
const mostTrail = 1024

func sameNodes(a, b []base.NodeID) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// checkCover proves that the active ranges of each topic tile the key space: a hole would refuse some keys for ever.
func checkCover(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG130", Name: "every topic covers its key space"}
	topics, holes := 0, 0
	for _, sum := range sums {
		topics += sum.Topics
		holes += sum.Holes
		if c.Detail == "" {
			c.Detail = sum.Hole
		}
	}
	switch {
	case holes > 0:
		c.Result, c.Detail = wire.HealthFail, fmt.Sprintf("%d topics do not: %s", holes, c.Detail)
	default:
		c.Detail = fmt.Sprintf("%d topics checked", topics)
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}

// checkCopies counts what lives of the copies that this version makes.
func checkCopies(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG140", Name: "segments have all their copies"}
	short, segments := 0, 0
	for _, sum := range sums {
		segments += sum.Segments
		short += sum.Short
	}
	c.Detail = fmt.Sprintf("%d of %d segments are short of copies", short, segments)
	if short > 0 {
		c.Result = wire.HealthWarn
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}

func (s *Server) checkDisk() wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG150", Name: "this node's disk has room and answers in time"}
	st := s.store.Stats()
	fsync := s.metrics.fsync.Snapshot()
	used := 0.0
	if st.DiskTotal > 0 {
		used = float64(st.DiskTotal-st.DiskFree) / float64(st.DiskTotal)
	}
	switch {
	case st.DiskFull:
		c.Result, c.Next = wire.HealthFail, "free space or shorten retention: eg-cli topic alter TOPIC retention=…"
	case used >= topology.HighWater || fsync.Quantile(0.99) > slowFsync:
		c.Result = wire.HealthWarn
	}
	c.Detail = fmt.Sprintf("%.0f%% used, fsync p99 %s", 100*used, term.FormatTook(fsync.Quantile(0.99)))
	return c
}

// slowFsync is when an operator should look at the disk.
const slowFsync = 500 * time.Millisecond

func (s *Server) checkDamage() wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG141", Name: "this node's data is intact"}
	st := s.store.Stats()
	if st.DamagedSegments > 0 {
		c.Result, c.Next = wire.HealthFail, "see the node's log for the files"
	}
	c.Detail = fmt.Sprintf("%d damaged segments, %d files in quarantine", st.DamagedSegments, st.QuarantinedFiles)
	if st.DamagedSegments == 0 && st.QuarantinedFiles > 0 {
		c.Result = wire.HealthWarn
	}
	return c
}
