package server

import (
	"context"
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/meta"
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
	resp.Checks = []wire.HealthCheck{
		s.checkNodes(view),
		s.checkShards(),
		s.checkCover(ctx),
		s.checkCopies(ctx, view),
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

func (s *Server) checkShards() wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG120", Name: "every shard has a leader"}
	list := s.host.Status()
	led := 0
	for _, st := range list {
		if st.Leader != "" {
			led++
			continue
		}
		c.Result, c.Next = wire.HealthFail, "eg-cli cluster status"
	}
	c.Detail = fmt.Sprintf("%d of %d shards have a leader", led, len(list))
	return c
}

// checkCover proves that the active ranges of each topic tile the key space: a hole would refuse some keys for ever.
func (s *Server) checkCover(ctx context.Context) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG130", Name: "every topic covers its key space"}
	topics := 0
	for _, st := range s.host.Status() {
		err := s.host.View(ctx, st.ID, func(m *meta.State) error {
			topics += m.Len()
			return m.Check()
		})
		if err != nil {
			c.Result, c.Detail = wire.HealthFail, fmt.Sprintf("shard %s: %s", st.ID, err)
			return c
		}
	}
	c.Detail = fmt.Sprintf("%d topics checked", topics)
	return c
}

func (s *Server) checkCopies(ctx context.Context, view topology.View) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG140", Name: "segments have all their copies"}
	short, segments := 0, 0
	for _, st := range s.host.Status() {
		err := s.host.View(ctx, st.ID, func(m *meta.State) error {
			for t := range m.All() {
				for _, r := range t.Ranges {
					for _, seg := range r.Segments {
						segments++
						if s.copies(seg, view) < t.Config.ReplicationFactor {
							short++
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			c.Result, c.Detail = wire.HealthFail, fmt.Sprintf("shard %s: %s", st.ID, err)
			return c
		}
	}
	if short > 0 {
		c.Result = wire.HealthWarn
	}
	c.Detail = fmt.Sprintf("%d of %d segments are short of copies", short, segments)
	return c
}

// copies counts the replicas whose nodes are alive with the disk that was named.
func (s *Server) copies(seg *meta.Segment, view topology.View) int {
	n := 0
	for _, rep := range seg.Replicas {
		if node, ok := view.Node(rep.Node); ok && node.Liveness == topology.Alive && node.Disk == rep.Disk {
			n++
		}
	}
	return n
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
