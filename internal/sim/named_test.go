package sim

import (
	"io"
	"math"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
)

// steady is a topic of one range and three replicas, written by two producers and read by one consumer.
var steady = StreamOptions{Topics: 1, Ranges: 1, Factor: 3, Writers: 2, Readers: 1, Every: 50 * time.Millisecond, Burst: 3, ValueBytes: 512}

// written starts nodes, lets them settle, and has a topic written.
func (c *Cluster) written(nodes int, o StreamOptions) *Load {
	c.T.Helper()
	c.Start(nodes)
	c.Quiet(time.Minute)
	load := c.StartLoad(LoadOptions{Clients: -1, Streams: o})
	load.Served(time.Minute)
	return load
}

// judged makes everything well again, and judges what became of all records.
func (c *Cluster) judged(load *Load) {
	c.T.Helper()
	c.mend()
	c.reap()
	for _, n := range c.nodes {
		if n.proc == nil {
			n.Start()
		}
	}
	c.Await(time.Minute, "all nodes serve", c.allServe)
	load.Served(time.Minute)
	load.Stop()
	c.Quiet(time.Minute)
	load.Verify()
}

// topicOf is a stream's topic as its shard's leader has it. One whose log stands still may believe that it leads for a
// while, and knows less.
func (c *Cluster) topicOf(s *stream) (newest *meta.Topic) {
	for _, n := range c.Running() {
		for _, r := range n.Inspect().Replicas {
			for _, t := range r.Topics {
				if r.Ready && t.Name == s.topic && (newest == nil || t.Version > newest.Version) {
					newest = t
				}
			}
		}
	}
	return newest
}

// active is the segment that a stream's first range is written to.
func (c *Cluster) active(load *Load) *meta.Segment {
	c.T.Helper()
	var s *meta.Segment
	c.Await(time.Minute, "the topic has an active segment", func() bool {
		if t := c.topicOf(load.streams[0]); t != nil {
			s = t.Ranges[0].Active()
		}
		return s != nil
	})
	return s
}

// replicas are the nodes of a segment, its leader first.
func (c *Cluster) replicas(s *meta.Segment) (nodes []*Node) {
	for _, r := range s.Replicas {
		nodes = append(nodes, c.named(r.Node))
	}
	return nodes
}

// coordinator is the node that leads the shard of a stream's topic.
func (c *Cluster) coordinator(s *stream) *Node {
	c.T.Helper()
	var leader *Node
	c.Await(time.Minute, "the topic's shard is led", func() bool {
		for _, n := range c.Running() {
			for _, r := range n.Inspect().Replicas {
				if r.Ready && r.ID == meta.ShardOf(s.topic, c.options.Shards) {
					leader = n
				}
			}
		}
		return leader != nil
	})
	return leader
}

// durable is what a node has of a segment on stable storage; -1: no copy.
func (n *Node) durable(id base.SegmentID) int64 {
	for _, s := range n.Inspect().Segments {
		if s.Segment == id {
			return s.DurableEnd
		}
	}
	return -1
}

// succeeded waits until the range is written to another segment than before.
func (c *Cluster) succeeded(load *Load, before *meta.Segment, within time.Duration) (ended, active *meta.Segment) {
	c.T.Helper()
	c.Await(within, "the segment has a successor that is written", func() bool {
		t := c.topicOf(load.streams[0])
		if t == nil {
			return false
		}
		r := t.Ranges[0]
		ended, active = r.Segment(before.ID), r.Active()
		return active != nil && active.ID != before.ID
	})
	load.Served(within)
	return ended, active
}

// The leader loses its power before it has synced what its followers have synced, and is back within a second. It does not
// go on with its segment: the others decide where that ended, and it takes what they have.
func TestLeaderLosesPowerBeforeItsSync(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		load := c.written(3, steady)
		s := c.active(load)
		nodes := c.replicas(s)
		leader := nodes[0]
		leader.HangSyncs()
		c.Await(10*time.Second, "the followers are ahead of their leader", func() bool {
			own := leader.durable(s.ID)
			return nodes[1].durable(s.ID) > own && nodes[2].durable(s.ID) > own
		})
		ahead := nodes[1].durable(s.ID)
		leader.cutOff(func(disk *vfs.Mem) *vfs.Mem { return disk.CrashClone(rand.New(rand.NewSource(1)), 0) })
		c.Check()
		time.Sleep(500 * time.Millisecond)
		leader.Start()
		ended, _ := c.succeeded(load, s, 15*time.Second)
		require.GreaterOrEqual(t, ended.End, ahead, "what both followers had is kept")
		c.judged(load)
	})
}

// A leader is cut off from the coordinator alone. Its followers hear it, so it leads on; it rolls through the others.
func TestLeaderCutFromTheCoordinator(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		o := steady
		o.SegmentBytes = base.MinSegmentBytes
		load := c.written(5, o)
		s := c.active(load)
		leader, coordinator := c.replicas(s)[0], c.coordinator(load.streams[0])
		for try := 0; leader == coordinator; try++ {
			_, s = c.succeeded(load, s, time.Minute)
			leader, coordinator = c.replicas(s)[0], c.coordinator(load.streams[0])
			require.Less(t, try, 50)
		}
		c.Partition([]*Node{leader}, []*Node{coordinator})
		for range 8 {
			time.Sleep(time.Second)
			c.Check()
			load.Served(10 * time.Second)
		}
		c.judged(load)
	})
}

// A leader that only clients reach goes on thinking that it leads, while others take its range over. It acks nothing, since
// its followers are gone; and what it wrote is void.
func TestZombieLeader(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		load := c.written(5, steady)
		s := c.active(load)
		leader := c.replicas(s)[0]
		c.Partition([]*Node{leader}, c.without(leader))
		ended, active := c.succeeded(load, s, 20*time.Second)
		require.NotEqual(t, leader.Name, string(active.Leader().Node))
		require.Equal(t, base.CauseLeaderFailure, ended.Cause)
		time.Sleep(5 * time.Second)
		c.Check()
		c.judged(load)
	})
}

// A follower is fenced because the leader died, and loses its disk before the seal is committed. The other one decides.
func TestFollowerWipedBetweenFenceAndSeal(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		load := c.written(5, steady)
		s := c.active(load)
		nodes := c.replicas(s)
		coordinator := c.coordinator(load.streams[0])
		if coordinator != nodes[1] {
			nodes[1], nodes[2] = nodes[2], nodes[1]
		}
		wiped := nodes[2] // not the coordinator
		for _, n := range c.Nodes() {
			if n != wiped && n != nodes[0] {
				n.SlowDisk(150 * time.Millisecond) // a seal takes longer than a fence
			}
		}
		nodes[0].Kill()
		c.Await(20*time.Second, "the follower is fenced", func() bool {
			return slices.ContainsFunc(wiped.Inspect().Segments, func(info store.SegmentInfo) bool { return info.Segment == s.ID && info.Fenced })
		})
		require.Equal(t, s.ID, c.active(load).ID, "it is not sealed yet")
		wiped.Kill()
		c.Book.Lose(s.Replicas[slices.IndexFunc(s.Replicas, func(r base.Replica) bool { return string(r.Node) == wiped.Name })].Disk)
		wiped.Wipe()
		wiped.harmed = true
		for _, n := range c.Running() {
			n.proc.disk.Clear()
			n.proc.disk.Add(usualDisk)
		}
		time.Sleep(3 * time.Second)
		nodes[0].Start() // its shard may need it
		c.succeeded(load, s, 30*time.Second)
		c.replace(wiped)
		wiped.Start()
		c.judged(load)
	})
}

// A segment that nobody has written to loses its leader to a partition: it is sealed empty, and dropped. The leader, whom
// clients reach, appends to it all the same; nothing of that is acked or ever read.
func TestEmptySegmentDroppedUnderAZombie(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		o := steady
		o.Every = time.Hour // until it is time
		c.Start(5)
		c.Quiet(time.Minute)
		load := c.StartLoad(LoadOptions{Clients: -1, Streams: o})
		c.Await(time.Minute, "the topic is made", func() bool { return load.streams[0].id.Load() != nil })
		s := c.active(load)
		leader := c.replicas(s)[0]
		time.Sleep(2 * time.Second)
		c.Partition([]*Node{leader}, c.without(leader))
		late := c.StartLoad(LoadOptions{Clients: -1})
		stream := load.streams[0]
		late.streams = append(late.streams, stream)
		late.clients.Go(func() {
			stream.writeEvery(50*time.Millisecond, late.stopped, 10, randv2.New(randv2.NewPCG(1, 10)))
		})
		ended, next := c.succeeded(late, s, 30*time.Second)
		require.True(t, ended == nil || ended.Empty())
		again := c.named(next.Leader().Node) // the last of the sealed segments is kept though it is empty, until another follows
		again.Kill()
		again.Start()
		c.succeeded(late, next, 30*time.Second)
		gone := func(o *meta.Segment) bool { return o.ID == s.ID }
		require.False(t, slices.ContainsFunc(c.topicOf(stream).Ranges[0].Segments, gone), "an empty segment is dropped from its chain")
		time.Sleep(3 * time.Second)
		c.Check()
		load.Stop()
		c.judged(late)
	})
}

// One sync fails, of the leader or of a follower. Its process ends at once; writers go on elsewhere; the node is welcome
// back.
func TestASyncFails(t *testing.T) {
	for i, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
				load := c.written(4, steady)
				s := c.active(load)
				n := c.replicas(s)[i]
				n.FailSync()
				c.Await(5*time.Second, n.Name+" ends", func() bool { return n.Ended() != nil })
				c.succeeded(load, s, 10*time.Second)
				c.reap()
				n.Start()
				c.judged(load)
			})
		})
	}
}

// A disk answers no sync any more, for half a minute: of the leader, or of a follower. Writers go on elsewhere.
func TestAHungSync(t *testing.T) {
	for i, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
				load := c.written(4, steady)
				s := c.active(load)
				n := c.replicas(s)[i]
				n.HangSyncs()
				_, active := c.succeeded(load, s, 15*time.Second)
				require.NotEqual(t, n.Name, string(active.Leader().Node))
				for range 6 {
					time.Sleep(5 * time.Second)
					c.Check()
				}
				load.Served(10 * time.Second)
				c.judged(load)
			})
		})
	}
}

// One disk is full, then all are. With one, writers go on; with all, nothing is acked, what there is can be read, and
// writers go on once there is room.
func TestFullDisks(t *testing.T) {
	reserve := func(_ int, cfg *config.Config) { cfg.ReserveBytes = 4 << 20 }
	Run(t, Options{Seed: 1, Config: reserve}, func(t *testing.T, c *Cluster) {
		o := steady
		o.ValueBytes, o.Burst = 64<<10, 4
		load := c.written(4, o)
		c.replicas(c.active(load))[1].FillDisk(0)
		for range 10 {
			time.Sleep(2 * time.Second)
			c.Check()
		}
		load.Served(20 * time.Second)
		for _, n := range c.Nodes() {
			n.FillDisk(0)
		}
		before := int64(-1)
		c.Await(5*time.Minute, "nothing is acked any more", func() bool {
			time.Sleep(10 * time.Second)
			last := before
			before = load.streams[0].acked.Load()
			return before == last
		})
		c.Check()
		require.NoError(t, load.streams[0].passes(), "what there is can be read")
		c.Book.Change(func(h *ledger.History) { h.Passes = nil }) // more is written later
		for _, n := range c.Nodes() {
			n.FreeDisk()
		}
		load.Served(time.Minute)
		c.judged(load)
	})
}

// A bit of a replica's disk turns: in a segment that it still writes to (which is in its log), or in one that is sealed.
// The other copies have it all, readers see nothing of it, and the replica never says that it is whole.
func TestABitTurns(t *testing.T) {
	for _, tc := range []struct {
		name, files string
		end         func(*Node)
	}{{"active", "wal", (*Node).Kill}, {"sealed", "topics", (*Node).Stop}} { // what stops in good order leaves files

		t.Run(tc.name, func(t *testing.T) {
			Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
				o := steady
				o.SegmentBytes = base.MinSegmentBytes
				load := c.written(4, o)
				time.Sleep(10 * time.Second)
				n := c.replicas(c.active(load))[1]
				tc.end(n)
				n.turnBit(t, tc.files)
				time.Sleep(time.Second)
				n.Start()
				c.Await(time.Minute, n.Name+" serves", n.Serving)
				time.Sleep(5 * time.Second)
				c.Check()
				c.judged(load)
			})
		})
	}
}

// turnBit turns a bit in the middle of the records of the largest file below a directory.
func (n *Node) turnBit(t *testing.T, dir string) {
	n.harmed = true
	var largest string
	var size int64
	var look func(dir string)
	look = func(dir string) {
		list, err := n.disk.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range list {
			name := path.Join(dir, e.Name)
			if e.IsDir {
				look(name)
				continue
			}
			f, err := n.disk.OpenFile(name, os.O_RDONLY, 0)
			require.NoError(t, err)
			used := written(f)
			require.NoError(t, f.Close())
			if used > size && (strings.HasSuffix(name, ".log") || path.Base(path.Dir(name)) == "wal") {
				largest, size = name, used
			}
		}
	}
	look(path.Join(n.Config.DataDir, dir))
	require.NotEmpty(t, largest)
	f, err := n.disk.OpenFile(largest, os.O_RDWR, 0)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, size/2)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b, size/2)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	n.c.Trace.Logf("script", "a bit turns at %d of %d in %s of %s", size/2, size, largest, n.Name)
}

// written is how far a file is filled with something else than zeros.
func written(f vfs.File) (end int64) {
	b := make([]byte, 64<<10)
	for off := int64(0); ; off += int64(len(b)) {
		n, err := f.ReadAt(b, off)
		if i := slices.IndexFunc(b[:n], func(c byte) bool { return c != 0 }); i >= 0 {
			end = off + int64(n)
		}
		if err == io.EOF || n == 0 {
			return end
		}
	}
}

// Every node loses its power at one moment, several times. Everything that was acked is there.
func TestWholeClusterLosesPower(t *testing.T) {
	Run(t, Options{Seed: 1}, func(_ *testing.T, c *Cluster) {
		load := c.written(3, steady)
		for range 3 {
			time.Sleep(c.between(0, 3*time.Second))
			for _, n := range c.Running() {
				n.Crash()
			}
			for _, n := range c.Nodes() {
				n.Start()
			}
			c.Await(time.Minute, "all nodes serve", c.allServe)
			load.Served(time.Minute)
		}
		c.judged(load)
	})
}

// Segments of a megabyte are filled at full speed. A roll loses nothing and takes nothing in: each segment ends right
// behind the last record that was acked in it, and each record can be read when it has been acked.
func TestRollsAtFullSpeed(t *testing.T) {
	Run(t, Options{Seed: 1}, func(t *testing.T, c *Cluster) {
		o := StreamOptions{Topics: 1, Ranges: 2, Factor: 3, Writers: 2, Readers: 2, Every: 10 * time.Millisecond, Burst: 50, ValueBytes: 8 << 10, SegmentBytes: 1 << 20}
		load := c.written(4, o)
		time.Sleep(5 * time.Second)
		load.Stop()
		c.Quiet(time.Minute)
		load.Verify()

		last := make(map[base.RangeRef][]int64) // offsets acked
		for _, a := range c.Book.History().Acks {
			last[a.Ref] = append(last[a.Ref], a.Offset)
		}
		rolls := 0
		for _, s := range c.Book.History().Segments {
			if !s.Sealed() {
				continue
			}
			rolls++
			acked := int64(math.MinInt64)
			for _, off := range last[s.Ref] {
				if off < s.End {
					acked = max(acked, off)
				}
			}
			require.Equal(t, s.End, acked+1, "segment %v ends right behind the last acked record", s.ID)
		}
		require.Greater(t, rolls, 10)
		t.Logf("%d rolls", rolls)
	})
}
