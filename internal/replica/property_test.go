package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// twin is the commit rule written the slow way: it remembers every batch and every durable end, and derives all
// else from them each time it is asked.
type twin struct {
	ends    []int64 // of all batches ever appended
	durable map[base.NodeID]int64
	frozen  int64 // -1 until acks stop counting
	sealed  int64
	base    int64
}

func (w *twin) commit() int64 {
	if w.sealed >= 0 {
		return w.sealed
	}
	if w.frozen >= 0 {
		return w.frozen
	}
	low := w.next()
	for _, d := range w.durable {
		low = min(low, d)
	}
	return low
}

func (w *twin) next() int64 {
	if len(w.ends) == 0 {
		return w.base
	}
	return w.ends[len(w.ends)-1]
}

// done counts the batches that are committed.
func (w *twin) done() int { return w.below(w.commit()) }

// below counts the batches that end at or below an offset.
func (w *twin) below(offset int64) int {
	n := 0
	for _, end := range w.ends {
		if end <= offset {
			n++
		}
	}
	return n
}

// sent is the end of the batches that a follower was sent.
func (w *twin) sent(list []int) int64 {
	if len(list) == 0 {
		return w.base
	}
	return w.ends[len(list)-1]
}

func TestLeaderAgreesWithItsDumbTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []base.NodeID{"n1", "n2", "n3"}[:rapid.IntRange(1, 3).Draw(t, "replicas")]
		start := rapid.Int64Range(0, 1000).Draw(t, "base")
		l := NewLeader[int](Config{Self: "n1", Followers: nodes[1:], Base: start, Credit: 50})
		w := &twin{durable: map[base.NodeID]int64{}, frozen: -1, sealed: -1, base: start}
		for _, n := range nodes {
			w.durable[n] = start
		}
		now := time.Unix(0, 0)
		var acked []int
		sent := map[base.NodeID][]int{}
		down, lost := map[base.NodeID]bool{}, map[base.NodeID]bool{} // as it was told, or had reason to think
		back := func(n base.NodeID, to int64) {                      // what a follower is sent again from an offset on
			if !lost[n] && l.State() < Frozen {
				sent[n] = sent[n][:min(len(sent[n]), w.below(max(to, w.durable[n])))]
			}
		}

		drain := func(r Ready[int]) {
			acked = append(acked, r.Done...)
			for _, s := range r.Sends {
				sent[s.Node] = append(sent[s.Node], s.Items...)
				require.LessOrEqual(t, s.Commit, l.Commit())
			}
			if r.AskRoll {
				require.Equal(t, l.Commit(), r.Roll.End, "what is asked for is what was acked")
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			follower := rapid.SampledFrom(append(nodes[1:len(nodes):len(nodes)], "n4")).Draw(t, "follower") // n4 is a stranger
			rare := rapid.IntRange(0, 4).Draw(t, "rare") == 0
			switch rapid.SampledFrom([]string{"append", "append", "ack", "ack", "ack", "ack", "tick", "down", "up", "rewind", "lost", "drain", "freeze", "seal"}).Draw(t, "step") {
			case "append":
				bytes := rapid.IntRange(1, 40).Draw(t, "bytes")
				if !l.Room(bytes) {
					break
				}
				first := l.Append(rapid.IntRange(1, 5).Draw(t, "records"), bytes, len(w.ends))
				require.Equal(t, w.next(), first, "offsets are dense")
				w.ends = append(w.ends, l.Next())
			case "ack":
				n := rapid.SampledFrom(nodes).Draw(t, "node")
				end := w.next()
				if len(w.ends) > 0 {
					end = rapid.SampledFrom(w.ends).Draw(t, "end")
				}
				if n == "n1" {
					l.LocalDurable(end, now)
				} else if l.FollowerAck(n, end, now); end > w.sent(sent[n]) {
					break // that cannot be true
				}
				w.durable[n] = max(w.durable[n], end)
			case "down":
				l.FollowerDown(follower, now)
				down[follower] = true
			case "up":
				l.FollowerUp(follower, now)
				back(follower, 0)
				delete(down, follower)
			case "rewind":
				to := w.base
				if len(w.ends) > 0 {
					to = rapid.SampledFrom(w.ends).Draw(t, "to")
				}
				l.FollowerRewind(follower, to, now)
				back(follower, to)
			case "lost":
				if rare {
					l.FollowerLost(follower, now)
					lost[follower] = lost[follower] || follower != "n4" && l.State() != Sealed
				}
			case "tick":
				now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
				l.Tick(now)
			case "drain":
				if rare {
					l.Drain(base.CauseAge, now)
				}
			case "freeze":
				if rare {
					l.Freeze(base.CauseReplicaFailure, []base.NodeID{"n2"}, now)
				}
			case "seal":
				if !rare {
					break
				}
				end := w.commit()
				if len(w.ends) > 0 && w.sealed < 0 {
					end = max(end, rapid.SampledFrom(w.ends).Draw(t, "sealed end"))
				}
				require.NoError(t, l.Sealed(end))
				w.sealed = end
			}
			if l.State() == Frozen && w.frozen < 0 {
				w.frozen = w.commit()
			}
			drain(l.Ready())
			require.NoError(t, l.Check())

			for _, n := range l.Lost() { // it was said to be, or its link was down for too long
				require.True(t, lost[n] || down[n])
				lost[n] = true
			}
			if l.State() < Frozen && len(l.Lost()) > 0 {
				require.Equal(t, w.next(), w.commit(), "what is in flight without one of the replicas ends the segment")
				require.False(t, l.Room(1))
			}

			require.Equal(t, w.commit(), l.Commit())
			require.Equal(t, w.next(), l.Next())
			require.Len(t, acked, w.done())
			require.Len(t, l.Tail(), len(w.ends)-w.done(), "nothing is lost between Done and Tail")
			for i, b := range acked {
				require.Equal(t, i, b, "acks come in offset order, once")
			}
			for _, list := range sent {
				for i, b := range list {
					require.Equal(t, i, b, "a follower is sent every batch in order, and again only from where it went back to")
				}
			}
		}
	})
}
