package dataplane

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
)

// A follower whose segment has ended without anybody telling it does not let readers wait: its leader says so, by itself
// or when it is asked.
func TestAFollowerHearsThatItsLeaderLeadsNoMore(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.heard.mu.Lock()
		r.heard.links[leaderNode.Node] = peer.Link{Node: leaderNode.Node, Boot: source.Boot, Up: true, Heard: time.Now().Add(time.Hour)}
		r.heard.mu.Unlock()
		r.send(source, a, 0, 0, plain(2))
		r.expect(durableTo(2))
		time.Sleep(askLeaderEvery)
		for range 5 {
			require.True(t, r.plane.Hears(testRef))
		}
		r.expect(durableTo(2))
		time.Sleep(askLeaderEvery)
		require.True(t, r.plane.Hears(testRef))
		r.expect(durableTo(2))
		require.True(t, r.plane.ComesHere(testRef, 2))

		ended := appendMessage{segmentHead: headOf(a), ended: true}
		r.plane.receive(kindAppend, encodeAppend(&ended), arrival{from: replica.Source{Node: "n3", Boot: 1}})
		require.True(t, r.plane.Hears(testRef), "it is not who leads")
		r.acks()
		r.plane.receive(kindAppend, encodeAppend(&ended), arrival{from: source})
		require.False(t, r.plane.Hears(testRef))
		require.False(t, r.plane.ComesHere(testRef, 2))
		r.plane.receive(kindAppend, encodeAppend(&ended), arrival{from: source})
		r.expect()

		end := a
		end.State, end.End, end.Version = base.StateSealed, 2, 2
		require.Equal(t, meta.StatusHeld, r.assign(end).Status, "the end is the coordinator's to tell")
	})
}

// lastAppend is the message that a follower was sent last.
func (s *scripted) lastAppend(node base.NodeID) appendMessage {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.followers[node].appends
	return all[len(all)-1]
}

func TestALeaderTellsThatItLeadsNoMore(t *testing.T) {
	for _, retired := range []bool{false, true} {
		trioBubble(t, nil, func(t *testing.T, r *trio) {
			require.NoError(t, (<-r.append(plain(1), 0)).err)
			if retired {
				time.Sleep(2 * r.plane.o.RetireAfter)
				require.Nil(t, r.lead())
			}
			old := r.plane.find(testRef).current
			next := trioAssignment(2, 2, 1, 1, r.coord.config)
			next.Replicas = []base.Replica{{Node: "n9"}}
			require.Equal(t, meta.StatusHeld, r.assign(next).Status)
			for _, node := range []base.NodeID{"n2", "n3"} {
				last := r.links.lastAppend(node)
				require.True(t, last.ended)
				require.Equal(t, old.Segment, last.segment)
			}
			// One that did not hear it asks.
			ask := ackMessage{segmentHead: segmentHead{ref: testRef, epoch: old.Epoch, segment: old.Segment}, status: ackDurable, end: 1}
			before := len(r.links.followers["n2"].appends)
			r.plane.receive(kindAck, bytes.Clone(ask.encode()), arrival{from: replica.Source{Node: "n2", Boot: boot}})
			require.True(t, r.links.lastAppend("n2").ended)
			require.Len(t, r.links.followers["n2"].appends, before+1)
			ask.segment, ask.epoch = 3, 3 // of a segment that this node has not heard of yet
			r.plane.receive(kindAck, bytes.Clone(ask.encode()), arrival{from: replica.Source{Node: "n2", Boot: boot}})
			synctest.Wait()
			require.Len(t, r.links.followers["n2"].appends, before+1)
		})
	}
}

// Whoever waits for the records of a segment that was assigned here and never opened does not wait for long.
func TestASegmentThatIsNeverOpenedIsNotWaitedFor(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		require.True(t, r.plane.ComesHere(testRef, 0))
		time.Sleep(2 * opensWithin)
		require.False(t, r.plane.ComesHere(testRef, 0))
		r.open(source, a, nil, false)
		r.expect(durableTo(0))
		require.True(t, r.plane.ComesHere(testRef, 0))
	})
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		ended := appendMessage{segmentHead: headOf(a), ended: true}
		r.plane.receive(kindAppend, encodeAppend(&ended), arrival{from: source})
		synctest.Wait()
		require.False(t, r.plane.ComesHere(testRef, 0))
	})
}
