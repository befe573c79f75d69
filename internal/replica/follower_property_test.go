package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// copyTwin is a follower written the slow way: it remembers every batch that it took, by its first offset, and derives
// all else from them each time it is asked.
type copyTwin struct {
	taken   [][2]int64
	durable int64
	known   int64
	out     bool
	sealed  int64 // -1 until it is
}

func (w *copyTwin) end() int64 {
	var end int64
	for _, b := range w.taken {
		end = b[1]
	}
	if w.sealed >= 0 {
		end = min(end, w.sealed)
	}
	return end
}

func (w *copyTwin) commit() int64 {
	if w.sealed >= 0 {
		return min(w.sealed, w.durable)
	}
	return min(w.known, w.durable)
}

func TestFollowerAgreesWithItsDumbTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, stranger := Source{Node: "n1", Boot: 3}, Source{Node: "n1", Boot: 4}
		f, w := NewFollower(0), &copyTwin{sealed: -1}
		require.Equal(t, Take, f.Open(from))
		f.Opened()
		var acked, shown int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			running := !w.out && w.sealed < 0
			switch rapid.SampledFrom([]string{"append", "append", "append", "durable", "durable", "commit", "open", "stranger", "room", "fence", "seal"}).Draw(t, "step") {
			case "append":
				first := max(0, f.End()+int64(rapid.IntRange(-2, 2).Draw(t, "from end")))
				end := first + int64(rapid.IntRange(1, 2).Draw(t, "records"))
				verdict := f.Append(from, first, end)
				switch {
				case !running:
					require.Equal(t, Refuse, verdict)
				case first == w.end():
					require.Equal(t, Take, verdict)
					w.taken = append(w.taken, [2]int64{first, end})
				case first > w.end():
					require.Equal(t, Gap, verdict)
				case end <= w.end():
					require.Equal(t, Duplicate, verdict)
				default:
					require.Equal(t, Refuse, verdict, "it lies across the end")
				}
			case "durable":
				if w.end() > w.durable {
					w.durable = rapid.Int64Range(w.durable, w.end()).Draw(t, "durable")
				}
				f.Durable(w.durable)
			case "commit": // a leader's commit is never above what this follower has acked; an odd one is clipped
				commit := rapid.Int64Range(0, w.end()+1).Draw(t, "commit")
				f.Commit(from, commit)
				if running {
					w.known = max(w.known, commit)
				}
			case "open":
				verdict := f.Open(from)
				require.Equal(t, running, verdict == Duplicate)
				if running {
					acked = 0 // what is here is acked again
				}
			case "stranger":
				require.Equal(t, Refuse, f.Open(stranger))
				require.Equal(t, Refuse, f.Append(stranger, f.End(), f.End()+1))
				f.Commit(stranger, f.End())
			case "room":
				f.Dropped()
				f.Room()
			case "fence":
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					f.Fence()
					w.out = w.out || w.sealed < 0
				}
			case "seal":
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 && w.sealed < 0 {
					end := rapid.Int64Range(w.commit(), w.end()+1).Draw(t, "sealed end")
					require.NoError(t, f.Seal(end))
					w.sealed, w.durable = end, min(w.durable, end)
					require.Equal(t, end > w.end(), f.Short())
				}
			}
			require.NoError(t, f.Check())

			r := f.Ready()
			require.Equal(t, w.end(), f.End())
			require.Equal(t, w.durable, f.DurableEnd())
			require.Equal(t, w.commit(), f.CommitEnd())
			if r.Publish {
				require.Greater(t, r.Commit, shown, "readers are told news only")
			}
			shown = r.Commit
			require.Equal(t, w.commit(), shown, "and all of it")
			if r.Ack {
				require.False(t, w.out || w.sealed >= 0, "who is out acks nothing")
				acked = r.Durable
			}
			if !w.out && w.sealed < 0 {
				require.Equal(t, w.durable, acked, "what is durable is acked at once")
			}
		}
	})
}

// TestTeamsCommitWhatAllHold joins a leader and two followers by links that break, repeat and overlap, and disks that
// take their time. Whatever happens, nothing is committed that one of them does not hold; and when the links hold for a
// while, all of it is.
func TestTeamsCommitWhatAllHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		team := newTeam()
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			m := team.members[rapid.IntRange(0, 1).Draw(t, "member")]
			switch rapid.SampledFrom([]string{"append", "append", "local", "deliver", "deliver", "deliver", "sync", "answer", "answer", "cut", "drop"}).Draw(t, "step") {
			case "append":
				if team.l.Room(1) {
					team.l.Append(rapid.IntRange(1, 3).Draw(t, "records"), 1, team.l.Next())
				}
			case "local":
				team.l.LocalDurable(team.l.Next(), team.now)
			case "deliver":
				m.deliver()
			case "sync":
				m.f.Durable(m.f.End())
			case "answer":
				team.answer(m)
			case "cut": // a new session; of the old one an arbitrary tail is lost, the rest arrives before the new one's
				m.wire = m.wire[:rapid.IntRange(0, len(m.wire)).Draw(t, "arrives")]
				team.l.FollowerUp(m.node, team.now)
				m.wire = append(m.wire, sent{open: true})
			case "drop":
				if len(m.wire) > 0 && !m.wire[0].open {
					m.wire = m.wire[1:]
					m.f.Dropped()
					m.f.Room()
				}
			}
			team.settle(t)
		}
		for range 4 {
			team.l.LocalDurable(team.l.Next(), team.now)
			for _, m := range team.members {
				for len(m.wire) > 0 {
					m.deliver()
					team.answer(m)
					team.settle(t)
				}
				m.f.Durable(m.f.End())
				m.f.Probe(team.source, team.l.Next())
				team.answer(m)
				team.settle(t)
			}
		}
		require.Equal(t, team.l.Next(), team.l.Commit(), "all is committed in the end")
		for _, m := range team.members {
			require.Equal(t, team.l.Commit(), m.f.CommitEnd(), "and readable everywhere")
		}
	})
}

// team is a leader with its followers, and what is on its way between them.
type team struct {
	l       *Leader[int64]
	source  Source
	members []*member
	now     time.Time       // stands still
	ends    map[int64]int64 // of each batch, by its first offset
}

type member struct {
	node   base.NodeID
	f      *Follower
	source Source
	wire   []sent
}

// sent is one message to a follower.
type sent struct {
	open       bool
	first, end int64 // none if they are equal
	commit     int64
}

func newTeam() *team {
	team := &team{
		l:      NewLeader[int64](Config{Self: "n1", Followers: []base.NodeID{"n2", "n3"}}),
		source: Source{Node: "n1", Boot: 1}, ends: make(map[int64]int64),
	}
	for _, n := range []base.NodeID{"n2", "n3"} {
		team.members = append(team.members, &member{node: n, f: NewFollower(0), source: team.source, wire: []sent{{open: true}}})
	}
	return team
}

// settle puts on the wires what the leader asks for, and holds its commit against what the disks hold.
func (team *team) settle(t *rapid.T) {
	for _, e := range team.l.pending.all() {
		team.ends[e.base] = e.end
	}
	require.NoError(t, team.l.Check())
	for _, s := range team.l.Ready().Sends {
		for _, m := range team.members {
			if m.node != s.Node {
				continue
			}
			for _, first := range s.Items {
				m.wire = append(m.wire, sent{first: first, end: team.ends[first], commit: s.Commit})
			}
			m.wire = append(m.wire, sent{commit: s.Commit})
		}
	}
	for _, m := range team.members {
		require.NoError(t, m.f.Check())
		require.LessOrEqual(t, team.l.Commit(), m.f.DurableEnd(), "%s", m.node)
		require.LessOrEqual(t, m.f.CommitEnd(), team.l.Commit(), "%s", m.node)
	}
}

// deliver gives a follower the first message on its way.
func (m *member) deliver() {
	if len(m.wire) == 0 {
		return
	}
	s := m.wire[0]
	m.wire = m.wire[1:]
	if s.open {
		if m.f.Open(m.source) == Take {
			m.f.Opened()
		}
		return
	}
	if s.end > s.first {
		m.f.Append(m.source, s.first, s.end)
	}
	m.f.Commit(m.source, s.commit)
}

// answer brings the leader what a follower has to say.
func (team *team) answer(m *member) {
	r := m.f.Ready()
	if r.Ack {
		team.l.FollowerAck(m.node, r.Durable, team.now)
	}
	if r.Want {
		team.l.FollowerRewind(m.node, r.End, team.now)
	}
}
