package server

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/telemetry"
)

// leaderlessAfter is how long a shard may be without a leader before that is news: an election takes less.
const leaderlessAfter = 3 * time.Second

// leaderWatch notices shards that nobody leads. Who leads is told by the leader itself; that nobody does, only those
// who wait for one can tell.
type leaderWatch struct {
	lost map[base.ShardID]lostLeader
}

type lostLeader struct {
	since time.Time
	told  bool
}

// look compares the replicas here with the last look and returns what there is to tell.
func (w *leaderWatch) look(replicas []shard.Status, now time.Time) (news []telemetry.Event) {
	lost := make(map[base.ShardID]lostLeader)
	for i := range replicas {
		st := &replicas[i]
		was, known := w.lost[st.ID]
		switch {
		case st.Leader != "" && was.told:
			news = append(news, telemetry.Event{
				Type: "SHARD_LED_AGAIN", Subject: shardSubject(st.ID), After: string(st.Leader), GapMs: now.Sub(was.since).Milliseconds(),
			})
		case st.Leader != "":
		case !known:
			lost[st.ID] = lostLeader{since: now}
		case !was.told && now.Sub(was.since) >= leaderlessAfter:
			news = append(news, telemetry.Event{
				Type: "SHARD_LEADERLESS", Subject: shardSubject(st.ID), Detail: map[string]string{"since": was.since.UTC().Format(time.RFC3339)},
			})
			lost[st.ID] = lostLeader{was.since, true}
		default:
			lost[st.ID] = was
		}
	}
	w.lost = lost
	return news
}

// noteLeaderless is called every few seconds, by one goroutine.
func (s *Server) noteLeaderless() {
	if !s.progress.done.Load() {
		return // the replicas have not begun
	}
	for _, e := range s.leaders.look(s.host.Status(), time.Now()) {
		s.note(e)
	}
}
