package routing

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// cutOff is a member that one other cannot be reached from, whatever the others see.
type cutOff struct {
	*member
	from base.NodeID
}

func (c *cutOff) Call(ctx context.Context, node base.NodeID, kind peer.Kind, msg []byte) ([]byte, error) {
	if node == c.from {
		return nil, base.Errorf(base.CodeUnreachable, "call", "node %s cannot be reached from here", node)
	}
	return c.member.Call(ctx, node, kind, msg)
}

// asked is a recording of a scatter's questions.
type asked struct {
	mu     sync.Mutex
	calls  map[base.NodeID]int
	counts map[base.ShardID]int
	leads  map[base.ShardID]base.NodeID
	down   base.NodeID
}

func (a *asked) ask(_ context.Context, node base.NodeID, shards []base.ShardID) (Told, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[node]++
	if node == a.down {
		return Told{}, base.Errorf(base.CodeUnreachable, "ask", "gone")
	}
	told := Told{Claims: make(map[base.ShardID]Claim)}
	for _, s := range shards {
		if a.leads[s] == node {
			told.Answered = append(told.Answered, s)
			a.counts[s]++
		} else {
			told.Claims[s] = Claim{Leader: a.leads[s], Term: 9}
		}
	}
	return told, nil
}

func newAsked(leads map[base.ShardID]base.NodeID) *asked {
	return &asked{calls: make(map[base.NodeID]int), counts: make(map[base.ShardID]int), leads: leads}
}

func TestScatter(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		r := c.nodes["n1"].r
		leads := make(map[base.ShardID]base.NodeID)
		var shards []base.ShardID
		for i := range 12 {
			s := base.ShardID{Root: uint16(i)}
			shards = append(shards, s)
			leads[s] = []base.NodeID{"n1", "n2", "n3"}[i%3]
			r.Learn(s, Claim{Leader: leads[s], Term: 2})
		}
		a := newAsked(leads)
		require.Empty(t, r.Scatter(t.Context(), shards, a.ask))
		require.Equal(t, map[base.NodeID]int{"n1": 1, "n2": 1, "n3": 1}, a.calls, "one question a node")

		// Leaderships have moved: those that were asked say where to.
		for _, s := range shards {
			a.leads[s] = "n3"
		}
		a.calls, a.counts = make(map[base.NodeID]int), make(map[base.ShardID]int)
		require.Empty(t, r.Scatter(t.Context(), shards, a.ask))
		require.Equal(t, map[base.NodeID]int{"n1": 1, "n2": 1, "n3": 2}, a.calls)
		for _, s := range shards {
			require.Equal(t, 1, a.counts[s], "each shard answers once")
		}
	})
}

func TestScatterNamesWhatIsMissing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		r := c.nodes["n1"].r
		s1, s2, s3 := base.ShardID{Root: 1}, base.ShardID{Root: 2}, base.ShardID{Root: 3}
		a := newAsked(map[base.ShardID]base.NodeID{s1: "n1", s2: "n2"})
		a.down = "n2"
		r.Learn(s1, Claim{Leader: "n1", Term: 1})
		r.Learn(s2, Claim{Leader: "n2", Term: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		missing := r.Scatter(ctx, []base.ShardID{s1, s2, s3}, a.ask)
		slices.SortFunc(missing, func(a, b base.ShardID) int { return int(a.Root) - int(b.Root) })
		require.Equal(t, []base.ShardID{s2, s3}, missing)
		require.Equal(t, 1, a.counts[s1])
	})
}
