package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestThreePlanesHoldTheSame(t *testing.T) {
	teamBubble(t, teamOptions{fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		w.write(0, 500)
		synctest.Wait()
		require.Len(t, w.acked, 500)
		w.check()
		for _, one := range m.members {
			info, ok := one.store.Info(1)
			require.True(t, ok)
			require.EqualValues(t, 500, info.DurableEnd)
			require.EqualValues(t, 500, info.Commit, "the last commit comes by itself")
		}
		require.Empty(t, m.coord.requests())
	})
}

// At full speed segments of 1 MiB roll all the time; every acked offset is there, and the chain ends where the acks do.
func TestRollsAtFullSpeed(t *testing.T) {
	config := base.TopicConfig{SegmentBytes: 1 << 20, SegmentAge: time.Hour}
	teamBubble(t, teamOptions{fsync: time.Millisecond, config: config}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100_000, 20)
		w.write(0, 300)
		time.Sleep(5 * time.Second)
		w.check()
		chain := m.coord.chain(testRef)
		require.Greater(t, len(chain), 25)
		for i, seg := range chain[:len(chain)-1] {
			require.Equal(t, base.CauseDataPressure, seg.Cause)
			require.Equal(t, chain[i+1].Base, seg.End)
			for _, one := range m.members {
				info, ok := one.store.Info(seg.Segment)
				require.True(t, ok)
				require.Equal(t, seg.End, info.SealedEnd, "%s", seg.Segment)
				require.Equal(t, seg.End, info.DurableEnd)
			}
		}
		info, _ := m.members["n1"].store.Info(chain[len(chain)-1].Segment)
		require.EqualValues(t, 300, info.Commit)
	})
}

func TestCutThatHealsInTimeRollsNothing(t *testing.T) {
	teamBubble(t, teamOptions{fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		ended := make(chan struct{})
		go func() { w.write(0, 1000); close(ended) }()
		for range 5 {
			time.Sleep(20 * time.Millisecond)
			m.net.cut("n1", "n3")
			time.Sleep(30 * time.Millisecond)
			m.net.heal("n1", "n3")
		}
		<-ended
		require.Empty(t, m.coord.requests())
		w.check()
	})
}

func TestCutThatLastsReplacesTheFollower(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		w.write(0, 50)
		m.net.cut("n1", "n3")
		began := time.Now()
		w.write(50, 50)
		require.Less(t, time.Since(began), 500*time.Millisecond)
		require.Len(t, m.coord.requests(), 1)
		require.Equal(t, []base.NodeID{"n3"}, m.coord.requests()[0].Lost)
		last := m.coord.last(testRef)
		require.Equal(t, base.NodeID("n1"), last.Leader().Node)
		require.Equal(t, base.NodeID("n4"), last.Replicas[2].Node)
		synctest.Wait()
		w.check()
	})
}

func TestFollowerThatIsKilledCostsOneRoll(t *testing.T) {
	teamBubble(t, teamOptions{fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		ended := make(chan struct{})
		go func() { w.write(0, 2000); close(ended) }()
		time.Sleep(50 * time.Millisecond)
		m.members["n2"].kill()
		time.Sleep(50 * time.Millisecond)
		m.members["n2"].start(time.Millisecond)
		<-ended
		time.Sleep(time.Second)
		require.Len(t, m.coord.requests(), 1)
		require.Len(t, m.coord.last(testRef).Replicas, 2, "nobody else is there")
		w.check()
	})
}

func TestLeaderThatIsKilledIsReplaced(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		ended := make(chan struct{})
		go func() { w.write(0, 2000); close(ended) }()
		time.Sleep(50 * time.Millisecond)
		m.members["n1"].kill()
		m.coord.recover(testRef)
		time.Sleep(100 * time.Millisecond)
		m.members["n1"].start(time.Millisecond)
		<-ended
		time.Sleep(time.Second)
		require.Len(t, w.acked, 2000)
		w.check()
	})
}

// A leader that only the coordinator has lost goes on sending; its followers, fenced, ack nothing more of it, and what
// it has not acked goes on at its successor.
func TestZombieAcksNothingBehindTheFence(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		ended := make(chan struct{})
		go func() { w.write(0, 1000); close(ended) }()
		time.Sleep(50 * time.Millisecond)
		zombie := m.members["n1"]
		alive := zombie.plane.Swap(nil) // for the coordinator
		m.coord.recover(testRef)
		time.Sleep(50 * time.Millisecond)
		zombie.plane.Store(alive)
		<-ended
		time.Sleep(time.Second)
		require.Len(t, w.acked, 1000)
		w.check()
		require.False(t, alive.LedHere(testRef))
	})
}

func TestSlowFollowerIsReplaced(t *testing.T) {
	slow := map[base.NodeID]time.Duration{"n3": 2 * time.Second}
	teamBubble(t, teamOptions{nodes: 4, fsync: time.Millisecond, slow: slow}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		w.write(0, 100)
		req := m.coord.requests()
		require.Len(t, req, 1)
		require.Equal(t, []base.NodeID{"n3"}, req[0].Late)
		require.Equal(t, []base.NodeID{"n3"}, m.members["n1"].plane.Load().LateNodes(time.Now()))
		time.Sleep(10 * time.Second)
		w.check()
	})
}

func TestSilentFollowerIsLate(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		w.write(0, 10)
		m.net.silence("n1", "n2", true)
		w.write(10, 10)
		require.Equal(t, []base.NodeID{"n2"}, m.coord.requests()[0].Late)
		w.check()
	})
}

func TestMemoryOfAllReplicasIsFasterThanTheirDisks(t *testing.T) {
	config := base.TopicConfig{SegmentBytes: 5000, SegmentAge: time.Hour, Durability: base.DurabilityReplicated}
	teamBubble(t, teamOptions{fsync: 100 * time.Millisecond, config: config}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 1)
		w.write(0, 1) // waits until the segment is open everywhere
		began := time.Now()
		w.write(1, 9)
		synctest.Wait()
		require.Less(t, time.Since(began), 10*time.Millisecond)
		got, err := m.members["n3"].store.Read(testRef, 0, 1<<20, nil)
		require.NoError(t, err)
		require.EqualValues(t, 10, got.Next, "readers see what was acked")
		got.Release()
		w.write(10, 100)
		time.Sleep(5 * time.Second)
		require.Greater(t, len(m.coord.chain(testRef)), 2)
		w.check()
	})
}

// A leader whose own data port is cut finds every follower silent, and would find the next ones so too.
func TestLeaderThatIsCutOffDoesNotStay(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 5, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		w := m.writer(testRef, 1000, 100, 10)
		w.write(0, 20)
		for node := range m.members {
			m.net.silence("n1", node, true)
		}
		began := time.Now()
		w.write(20, 20)
		require.Less(t, time.Since(began), time.Second)
		require.Len(t, m.coord.requests(), 1)
		require.ElementsMatch(t, []base.NodeID{"n1", "n2", "n3"}, m.coord.requests()[0].Late)
		require.NotEqual(t, base.NodeID("n1"), m.coord.leaderOf(testRef))
	})
}

func TestLeaderWhoseFollowersAllFailStays(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 5, fsync: time.Millisecond}, func(t *testing.T, m *team) {
		other := base.RangeRef{Topic: testTopic, Range: 2}
		m.coord.create(other, "n1", "n4", "n5")
		w, v := m.writer(testRef, 1000, 100, 10), m.writer(other, 1_000_000, 100, 1)
		ended := make(chan struct{})
		go func() { v.write(0, 3000); close(ended) }()
		w.write(0, 20)
		m.net.silence("n1", "n2", true)
		m.net.silence("n1", "n3", true)
		w.write(20, 20)
		require.ElementsMatch(t, []base.NodeID{"n2", "n3"}, m.coord.requests()[0].Late, "n4 and n5 answer")
		require.Equal(t, base.NodeID("n1"), m.coord.leaderOf(testRef))
		<-ended
	})
}
