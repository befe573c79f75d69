package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/topology"
)

const (
	absenceEvery   = time.Second
	absencePropose = 5 * time.Second // for one node's end to be committed; else it is tried again
)

// watchAbsent begins to look for nodes that have been gone for too long.
func (s *Server) watchAbsent(context.Context) error {
	a := &absences{
		after:   s.cfg.NodeOut(),
		leading: func() uint64 { return s.host.Leading(base.RootShard) },
		known: func() []base.NodeID {
			var nodes []base.NodeID
			for _, n := range s.members.nodeTable().Nodes {
				nodes = append(nodes, n.ID)
			}
			return nodes
		},
		view: s.view,
		propose: func(ctx context.Context, cmd meta.Command) error {
			_, err := s.propose(ctx, "put node out", base.RootShard, cmd)
			return err
		},
		logger: s.deps.Logger,
	}
	s.members.tasks.Go("absences", func(ctx context.Context) error {
		a.run(ctx)
		return nil
	})
	return nil
}

// absences puts out of the cluster who has been gone for node_out_secs: the copies of its segments count as lost and
// its seats move. Only the node that leads the root shard does so, by what it has seen itself since it leads.
type absences struct {
	after   time.Duration
	leading func() uint64 // the term in which this node leads the root shard; 0: it does not
	known   func() []base.NodeID
	view    func() topology.View
	propose func(context.Context, meta.Command) error
	logger  *slog.Logger
}

// run looks every second until ctx ends.
func (a *absences) run(ctx context.Context) {
	ticker := time.NewTicker(absenceEvery)
	defer ticker.Stop()
	var seen planner.Absences
	var term uint64
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := a.leading()
		if now != term {
			term, seen = now, planner.Absences{}
		}
		if term == 0 {
			continue
		}
		for _, node := range seen.Standing(time.Now(), a.known(), a.view(), a.after) {
			a.putOut(ctx, node, seen.Gone(node))
		}
	}
}

func (a *absences) putOut(ctx context.Context, node base.NodeID, gone time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, absencePropose)
	defer cancel()
	err := a.propose(ctx, meta.Command{TimeMs: time.Now().UnixMilli(), SetNodeState: &meta.SetNodeState{Node: node, State: meta.NodeOut}})
	if err != nil {
		a.logger.Warn("node gone for too long, but not put out", "node", node, "gone", gone, "error", err)
		return
	}
	a.logger.Warn("node gone for too long and put out: its copies and seats are replaced", "node", node, "gone", gone)
}
