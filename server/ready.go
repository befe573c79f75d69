package server

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
)

// progress is how far the start has come. Whoever asks from another goroutine must not touch what later steps set
// before done says so.
type progress struct {
	at   atomic.Pointer[string]
	done atomic.Bool
}

// enter says what the start does now, or waits for.
func (p *progress) enter(what string) { p.at.Store(&what) }

func (p *progress) String() string {
	if at := p.at.Load(); at != nil {
		return *at
	}
	return "it has just begun"
}

// readiness says why this node should be sent no clients yet; empty when it should. A node that lost the leader of one
// shard goes on serving the others: that is told, because it ends by itself or is for an operator to see.
func (s *Server) readiness() []string {
	switch {
	case s.closing.Load():
		return []string{"the broker is stopping"}
	case !s.progress.done.Load():
		return []string{"starting: " + s.progress.String()}
	}
	var missing []string
	if n, ok := s.view().Node(s.id.Node); !ok || !n.Admitted || n.Boot != s.id.Boot {
		missing = append(missing, fmt.Sprintf("start %d of node %s is not admitted by the root shard", s.id.Boot, s.id.Node))
	}
	var leaderless []base.ShardID
	for _, st := range s.host.Status() {
		if st.Leader == "" {
			leaderless = append(leaderless, st.ID)
		}
	}
	if len(leaderless) > 0 {
		missing = append(missing, "no leader in "+someShards(leaderless))
	}
	return missing
}

// someShards names the first few of a list.
func someShards(list []base.ShardID) string {
	const most = 8
	noun := "shard "
	if len(list) > 1 {
		noun = "shards "
	}
	var names []string
	for _, id := range list[:min(len(list), most)] {
		names = append(names, id.String())
	}
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(" and %d more", len(list)-most)
	}
	return noun + strings.Join(names, ", ") + more
}
