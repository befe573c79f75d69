package server

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/topology"
)

// sighting is what the journal was told of a member last.
type sighting struct {
	boot     uint64
	rename   uint32
	liveness topology.Liveness
}

// memberNews is a change of a member that the journal has not been told yet.
type memberNews struct {
	node          base.NodeID
	kind          string
	before, after topology.Liveness
	boot          uint64
}

// sightings compares a snapshot with the one before. Only the caller of rebuild calls it.
func (m *membership) sightings(s *gossip.Snapshot) []memberNews {
	var news []memberNews
	for i := range s.Members {
		member := &s.Members[i]
		if member.Node == m.self {
			continue
		}
		before, met := m.seen[member.Node]
		next := sighting{member.Boot, member.Rename, member.Liveness}
		if before == next {
			continue
		}
		m.seen[member.Node] = next
		n := memberNews{node: member.Node, before: before.liveness, after: next.liveness, boot: next.boot}
		switch sameLife := met && before.boot == next.boot && before.rename == next.rename; {
		case next.liveness == topology.Alive && !sameLife:
			n.kind = "NODE_JOINED"
		case next.liveness == topology.Alive:
			n.kind = "NODE_REFUTED"
		case next.liveness == topology.Suspect:
			n.kind = "NODE_SUSPECT"
		case next.liveness == topology.Dead:
			n.kind = "NODE_DEAD"
		case next.liveness == topology.Left:
			n.kind = "NODE_LEFT"
		}
		news = append(news, n)
	}
	return news
}

// said is how the log tells of a change; of suspicions only the journal does, since most of them come to nothing.
func (n memberNews) said() (level slog.Level, message string) {
	switch n.kind {
	case "NODE_JOINED":
		return slog.LevelInfo, "node joined"
	case "NODE_LEFT":
		return slog.LevelInfo, "node left"
	case "NODE_DEAD":
		return slog.LevelWarn, "node is dead"
	}
	return slog.LevelDebug, "node's liveness changed"
}

// noteMember tells the journal and the log.
func (s *Server) noteMember(n memberNews) {
	level, message := n.said()
	s.deps.Logger.Log(context.Background(), level, message, "node", string(n.node), "boot", n.boot, "liveness", n.after.String())
	before := ""
	if n.before != topology.Unknown {
		before = n.before.String()
	}
	s.noteNode(n.node, n.kind, before, n.after.String(), "boot", strconv.FormatUint(n.boot, 10))
}
