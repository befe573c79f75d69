package dataplane

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// A follower that was away when the last batch came, and is back when a survivor's extent has decided the end, copies
// what it lacks, and is the same as the others.
func TestAFollowerThatWasAwayIsMended(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4}, func(t *testing.T, m *team) {
		first := m.coord.last(testRef)
		for i := range int32(5) {
			require.NoError(t, m.append(77, i))
		}
		m.net.silence("n1", "n3", true)
		go func() { _ = m.append(77, 5) }() // on the disks of n1 and n2 alone
		time.Sleep(20 * time.Millisecond)   // less than a follower may be away
		m.members["n1"].kill()
		m.members["n3"].kill()
		m.coord.recover(testRef)
		sealed := m.coord.chain(testRef)[0]
		require.EqualValues(t, 6, sealed.End)
		m.net.silence("n1", "n3", false)
		m.members["n3"].start(0)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var sums []uint32
		for _, node := range []base.NodeID{"n2", "n3"} {
			info, ok := m.members[node].store.Info(first.Segment)
			require.True(t, ok && info.Whole(), "%s ends at %d", node, info.DurableEnd)
			sum, err := m.members[node].store.Checksum(t.Context(), first.Segment)
			require.NoError(t, err)
			sums = append(sums, sum)
		}
		require.Equal(t, sums[0], sums[1])
	})
}

// append appends one batch of a producer to the range and waits for the ack.
func (m *team) append(producer int64, seq int32) error {
	done := make(chan error, 1)
	m.coord.leader(testRef).Append(AppendRequest{Ref: testRef, Bytes: makeBatch(1, producer, seq, 100)}, func(_ AppendResult, err error) { done <- err })
	return <-done
}

// A bit that has flipped on one replica's disk, in the active or in a sealed segment, is not an extent and is never read;
// nothing is deleted, and the other replicas have it all.
func TestABitFlipOnOneReplica(t *testing.T) {
	for _, name := range []string{"active", "sealed"} {
		t.Run(name, func(t *testing.T) {
			teamBubble(t, teamOptions{}, func(t *testing.T, m *team) {
				asg := m.coord.last(testRef)
				for i := range int32(20) {
					require.NoError(t, m.append(77, i))
				}
				if name == "sealed" {
					_, err := m.coord.leader(testRef).Tell(t.Context(), meta.Orders{Rolls: []meta.RollOrder{{Ref: testRef, Segment: asg.Segment, Epoch: asg.Epoch, Cause: base.CauseOperator}}})
					require.NoError(t, err)
					time.Sleep(time.Second)
				}
				one := m.members["n3"]
				one.stop()
				files := one.flip(t)
				one.start(0)
				synctest.Wait()

				_, err := one.store.Read(testRef, 0, 1<<20, nil)
				require.ErrorIs(t, err, base.CodeCorruptData)
				_, err = one.store.Tail(asg.Segment, 0, 20, 1<<20)
				require.ErrorIs(t, err, base.CodeCorruptData)
				answers, err := one.plane.Load().Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: asg.Epoch, Segment: asg.Segment, Boot: asg.Boots[2]}})
				require.NoError(t, err)
				require.Equal(t, meta.Damaged, answers[0].Kind)
				require.False(t, answers[0].Unbroken)
				require.Equal(t, files, one.files(t), "nothing is deleted")
				for _, node := range []base.NodeID{"n1", "n2"} {
					tail, err := m.members[node].store.Tail(asg.Segment, 0, 20, 1<<20)
					require.NoError(t, err)
					require.Len(t, tail.Batches, 20)
				}
			})
		})
	}
}

// stop ends the process in order: all is in files.
func (m *member) stop() {
	p := m.plane.Swap(nil)
	m.net.leave(m.node)
	require.NoError(m.t, p.Close())
	require.NoError(m.t, m.store.Close())
	m.mem = m.mem.Snapshot()
}

// flip changes one bit in the middle of the one segment's file that has records, and lists all files.
func (m *member) flip(t *testing.T) (files []string) {
	for _, name := range m.files(t) {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := m.mem.Stat(name)
		require.NoError(t, err)
		if info.Size == 0 {
			continue
		}
		f, err := m.mem.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		b := make([]byte, 1)
		_, err = f.ReadAt(b, info.Size/2)
		require.NoError(t, err)
		b[0] ^= 8
		_, err = f.WriteAt(b, info.Size/2)
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		return m.files(t)
	}
	t.Fatal("no file has records")
	return nil
}

// files lists the names under the topics' directory that hold records.
func (m *member) files(t *testing.T) (names []string) {
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := m.mem.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			switch name := dir + "/" + e.Name; {
			case e.IsDir:
				walk(name)
			case strings.HasSuffix(name, ".log"):
				names = append(names, name)
			}
		}
	}
	walk("/data/topics")
	return names
}

// A follower whose disk is full says so, and the range goes on without it; with every disk full producers hear it; and
// once there is room everything goes on, with all that was acked.
func TestDisksThatAreFull(t *testing.T) {
	teamBubble(t, teamOptions{nodes: 4}, func(t *testing.T, m *team) {
		seq := int32(0)
		put := func() error {
			err := m.append(77, seq)
			if err == nil {
				seq++
			}
			return err
		}
		for range 5 {
			require.NoError(t, put())
		}
		m.members["n3"].fill(t)
		for range 5 {
			require.NoError(t, put())
			time.Sleep(time.Second)
		}
		last := m.coord.last(testRef)
		for _, r := range last.Replicas {
			require.NotEqual(t, base.NodeID("n3"), r.Node)
		}
		for _, one := range m.members {
			one.fill(t)
		}
		require.Eventually(t, func() bool { return put() != nil }, time.Minute, time.Second)
		for _, one := range m.members {
			one.mem.SetCapacity(1 << 40)
		}
		time.Sleep(2 * time.Second)
		require.Eventually(t, func() bool { return put() == nil }, time.Minute, time.Second)
		require.NoError(t, put())
		time.Sleep(5 * time.Second)
		for _, asg := range m.coord.chain(testRef) {
			for _, r := range asg.Replicas {
				if info, ok := m.members[r.Node].store.Info(asg.Segment); ok && asg.State == base.StateSealed && asg.End > asg.Base {
					require.True(t, info.Whole(), "%s of %s ends at %d of %d", asg.Segment, r.Node, info.DurableEnd, asg.End)
				}
			}
		}
	})
}

// fill leaves the node's disk no room for records.
func (m *member) fill(t *testing.T) {
	free, total, err := m.mem.Free("/data")
	require.NoError(t, err)
	m.mem.SetCapacity(total - free + 1<<20)
}
