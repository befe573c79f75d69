package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	var nodes nodeReports
	var asking sync.WaitGroup
	asking.Go(func() { nodes.status, nodes.silent = s.collect(ctx) })
	sums, missing := s.sums(ctx, false)
	asking.Wait()
	resp.Checks = []wire.HealthCheck{
		checkNodes(view, nodes),
		checkRings(nodes),
		checkShards(sums, missing),
		s.checkVoters(view, sums, missing),
		checkCover(sums, missing),
		checkCopies(sums, missing, nodes),
		checkEnds(sums, missing, time.Now()),
		checkPlaces(sums, missing, time.Now()),
		checkGaps(sums, missing),
		checkDisks(nodes),
		checkDamage(nodes),
	}
	return resp, nil
}

// nodeReports is what the nodes say of themselves.
type nodeReports struct {
	status []wire.NodeStatus // of those that have not answered, what is believed
	silent []base.NodeID     // that should have answered
}

// answered are the reports that the nodes gave themselves.
func (r nodeReports) answered() []wire.NodeStatus {
	return slices.DeleteFunc(slices.Clone(r.status), func(n wire.NodeStatus) bool {
		return slices.Contains(r.silent, n.ID) || n.State == topology.Dead.String() || n.State == topology.Left.String()
	})
}

// unheard ends a check's sentence with the nodes that did not answer, of which it knows nothing.
func (r nodeReports) unheard(c *wire.HealthCheck) {
	if len(r.silent) > 0 {
		c.Result = wire.HealthFail
		c.Detail += "; no answer from " + someOf(r.silent)
	}
}

// someOf lists nodes, or the first of many.
func someOf(nodes []base.NodeID) string {
	text := ""
	for i, n := range nodes {
		switch {
		case i == mostNamed:
			return text + " …"
		case i > 0:
			text += " "
		}
		text += string(n)
	}
	return text
}

// awayNames say how a node is away.
var awayNames = map[topology.Liveness]string{
	topology.Left: "stopped", topology.Dead: "dead", topology.Suspect: "suspect", topology.Unknown: "not met yet",
}

func checkNodes(view topology.View, nodes nodeReports) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG110", Name: "nodes are alive"}
	away := make(map[topology.Liveness][]base.NodeID)
	alive := 0
	for i := range view.Nodes {
		n := &view.Nodes[i]
		switch {
		case n.Liveness == topology.Alive:
			alive++
		case n.Standing != topology.Out:
			away[n.Liveness] = append(away[n.Liveness], n.ID)
		}
	}
	c.Detail = fmt.Sprintf("%d of %d nodes alive", alive, len(view.Nodes))
	for _, how := range []topology.Liveness{topology.Left, topology.Dead, topology.Suspect, topology.Unknown} {
		if len(away[how]) > 0 {
			c.Detail += fmt.Sprintf("; %s: %s", awayNames[how], someOf(away[how]))
		}
	}
	if alive == 0 || len(away) > 0 {
		c.Result = wire.HealthFail
	}
	nodes.unheard(&c)
	switch {
	case len(away[topology.Left])+len(away[topology.Dead]) > 0:
		c.Next = "start it again; if it will never come back: eg-cli node forget NODE"
	case c.Result != wire.HealthPass:
		c.Next = "eg-cli node list"
	}
	return c
}

// checkRings passes when all nodes have made the same ring: who disagrees looks for shards and copies elsewhere.
func checkRings(nodes nodeReports) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG113", Name: "nodes agree on the members"}
	rings := make(map[uint64][]base.NodeID)
	for _, n := range nodes.answered() {
		rings[n.RingHash] = append(rings[n.RingHash], n.ID)
	}
	switch len(rings) {
	case 0:
		c.Result, c.Detail = wire.HealthFail, "nobody has said"
	case 1:
		c.Detail = counted(len(nodes.answered()), "node has", "nodes have") + " the same ring"
	default:
		c.Result, c.Detail = wire.HealthFail, fmt.Sprintf("%d different rings among %d nodes", len(rings), len(nodes.answered()))
	}
	nodes.unheard(&c)
	if c.Result != wire.HealthPass {
		c.Next = "eg-cli node ring --verify"
	}
	return c
}

// checkShards passes when every shard's leader has answered: whoever is only said to lead may be gone.
func checkShards(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
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
	text := "; no answer from " + counted(len(missing), "shard", "shards") + ":"
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
	short, behind, astray := 0, 0, 0
	for _, sum := range sums {
		if len(sum.Status.Voters) < want {
			short++
		}
		if sum.Behind > 0 {
			behind++
		}
		if sum.Astray {
			astray++
		}
	}
	c.Detail = fmt.Sprintf("%d of %d shards have %d or more", len(sums)-short, len(sums)+len(missing), want)
	switch {
	case short > 0 || behind > 0 || len(missing) > 0 || len(sums) == 0:
		c.Result = wire.HealthFail
	case astray > 0:
		c.Result = wire.HealthWarn
	}
	if behind > 0 {
		c.Detail += "; in " + counted(behind, "shard", "shards") + " a voter is behind"
	}
	if astray > 0 {
		c.Detail += "; in " + counted(astray, "shard", "shards") + " a voter is not where the ring wants it yet"
	}
	c.Detail += unanswered(missing)
	if c.Result != wire.HealthPass {
		c.Next = "eg-cli shard list"
	}
	return c
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
		c.Result, c.Detail = wire.HealthFail, counted(holes, "topic does", "topics do")+" not: "+c.Detail
	default:
		c.Detail = counted(topics, "topic", "topics") + " checked"
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}

// checkCopies holds the living copies of each segment against its topic's factor, and asks the nodes for copies that are
// short. A segment without any is not readable, and if it is active not writable either.
func checkCopies(sums []shardSum, missing []base.ShardID, nodes nodeReports) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG140", Name: "segments have all their copies"}
	var short shortCopies
	segments := 0
	for _, sum := range sums {
		segments += sum.Segments
		short.join(sum.Short)
	}
	c.Detail = fmt.Sprintf("%d of %d segments are short of copies", short.Under, segments)
	if short.Under > 0 {
		c.Result, c.Next = wire.HealthWarn, "eg-cli segment list --state under-replicated"
		c.Detail += short.names()
	}
	for _, n := range nodes.answered() {
		if n.Short > 0 {
			c.Result, c.Next = wire.HealthWarn, "eg-cli segment list --state under-replicated"
			c.Detail += fmt.Sprintf("; %s a part on %s", counted(n.Short, "copy lacks", "copies lack"), n.ID)
		}
	}
	if short.Gone > 0 {
		c.Result = wire.HealthFail
		c.Detail = counted(short.Gone, "segment has", "segments have") + " no living copy; " + c.Detail
	}
	if len(missing) > 0 || len(sums) == 0 {
		c.Result = wire.HealthFail
		c.Detail += unanswered(missing)
	}
	return c
}

// slowFsync is when an operator should look at a disk.
const slowFsync = 500 * time.Millisecond

// checkDisks shows the worst disk.
func checkDisks(nodes nodeReports) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG150", Name: "disks have room and answer in time"}
	var fullest, slowest wire.NodeStatus
	var full []base.NodeID
	used := func(n wire.NodeStatus) float64 {
		if n.DiskTotal == 0 {
			return 0
		}
		return float64(n.DiskUsed) / float64(n.DiskTotal)
	}
	for _, n := range nodes.answered() {
		if n.Full {
			full = append(full, n.ID)
		}
		if fullest.ID == "" || used(n) > used(fullest) {
			fullest = n
		}
		if slowest.ID == "" || n.FsyncP99Us > slowest.FsyncP99Us {
			slowest = n
		}
	}
	fsync := time.Duration(slowest.FsyncP99Us) * time.Microsecond
	c.Detail = fmt.Sprintf("%.0f%% used, fsync p99 %s", 100*used(fullest), term.FormatTook(fsync))
	if len(nodes.status) > 1 {
		c.Detail = fmt.Sprintf("up to %.0f%% used (%s), fsync p99 up to %s (%s)", 100*used(fullest), fullest.ID, term.FormatTook(fsync), slowest.ID)
	}
	switch {
	case len(full) > 0:
		c.Result, c.Next = wire.HealthFail, "free space or shorten retention: eg-cli topic alter TOPIC retention=…"
		c.Detail = "no room on " + someOf(full) + "; " + c.Detail
	case used(fullest) >= topology.HighWater || fsync > slowFsync:
		c.Result, c.Next = wire.HealthWarn, "eg-cli node list"
	}
	nodes.unheard(&c)
	return c
}

func checkDamage(nodes nodeReports) wire.HealthCheck {
	c := wire.HealthCheck{ID: "EG151", Name: "stored data is intact"}
	damaged, quarantined := 0, 0
	var where []base.NodeID
	for _, n := range nodes.answered() {
		damaged += n.Damaged
		quarantined += n.Quarantined
		if n.Damaged+n.Quarantined > 0 {
			where = append(where, n.ID)
		}
	}
	c.Detail = counted(damaged, "damaged segment", "damaged segments") + ", " + counted(quarantined, "file", "files") + " in quarantine"
	switch {
	case damaged > 0:
		c.Result = wire.HealthFail
	case quarantined > 0:
		c.Result = wire.HealthWarn
	}
	if len(where) > 0 {
		c.Next = "see the logs of " + someOf(where) + " for the files; what lies in data_dir/quarantine is counted at each start"
	}
	nodes.unheard(&c)
	return c
}
