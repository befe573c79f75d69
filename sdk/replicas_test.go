package sdk

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// replicated makes a topic of one range with a replica on each of n1, n2 and n3; n1 leads.
func replicated(c *fakeCluster) *fakeTopic {
	c.start("n3")
	topic := c.addTopic("orders", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	topic.ranges[0].route.Active.Replicas = []base.NodeID{"n1", "n2", "n3"}
	return topic
}

// askedFetch counts the fetches that each node was sent.
func askedFetch(c *fakeCluster) map[base.NodeID]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[base.NodeID]int)
	for _, node := range c.asked[wire.KindFetch] {
		n[node]++
	}
	return n
}

// reader makes a consumer of the replicated topic through a client of its own.
func reader(t *testing.T, c *fakeCluster, salt uint64, opts ...ConsumerOption) (*Consumer, func()) {
	cl := c.client(WithRack("blue"), WithSeeds("n2:2921", "n3:2921"))
	cl.salt = salt
	k, err := cl.NewConsumer(append([]ConsumerOption{WithTopics("orders")}, opts...)...)
	require.NoError(t, err)
	return k, func() {
		require.NoError(t, k.Close())
		require.NoError(t, cl.Close())
	}
}

// Readers of replicas that are equally near spread over them, each of them at one, and the same one each time.
func TestConsumersSpreadOverReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		const readers = 60
		for salt := range uint64(readers) {
			k, end := reader(t, c, salt, WithStop(StopAtEnd()))
			requireValues(t, collect(t, k, 100), 0)
			end()
		}
		asked := askedFetch(c)
		for _, n := range []base.NodeID{"n1", "n2", "n3"} {
			require.Greater(t, asked[n], readers/6, "%v", asked)
		}
	})
}

// The same rack comes before a shorter way, and a shorter way before a longer one.
func TestConsumerReadsFromTheNearestReplica(t *testing.T) {
	for name, tc := range map[string]struct {
		racks map[base.NodeID]string
		rtt   map[string]time.Duration
		from  ReadFrom
		want  base.NodeID
	}{
		"same rack":            {racks: map[base.NodeID]string{"n2": "blue"}, rtt: map[string]time.Duration{"n2:2921": 9 * time.Millisecond}, want: "n2"},
		"shorter way":          {rtt: map[string]time.Duration{"n1:2921": 8 * time.Millisecond, "n2:2921": 20 * time.Millisecond, "n3:2921": 3 * time.Millisecond}, want: "n3"},
		"shorter way in racks": {racks: map[base.NodeID]string{"n1": "blue", "n2": "blue"}, rtt: map[string]time.Duration{"n1:2921": 8 * time.Millisecond, "n2:2921": 3 * time.Millisecond}, want: "n2"},
		"leader":               {racks: map[base.NodeID]string{"n2": "blue"}, from: ReadLeader(), want: "n1"},
		"node":                 {racks: map[base.NodeID]string{"n2": "blue"}, from: ReadNode("n3"), want: "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				replicated(c)
				c.racks = tc.racks
				c.net.delay(tc.rtt)
				k, end := reader(t, c, 1, WithReadFrom(tc.from))
				defer end()
				for i := range 20 { // after a while at wherever it began it has measured, and moved
					fill(t, cl, "orders", i, 1)
					requireValues(t, collect(t, k, 1), i)
					time.Sleep(time.Second)
				}
				before := askedFetch(c)
				for i := range 10 {
					fill(t, cl, "orders", 20+i, 1)
					requireValues(t, collect(t, k, 1), 20+i)
				}
				after := askedFetch(c)
				for _, n := range []base.NodeID{"n1", "n2", "n3"} {
					require.Equal(t, n == tc.want, after[n] > before[n], "%s: %v, %v", n, before, after)
				}
			})
		})
	}
}

// A replica that cannot serve is left at once for the next, each is asked once, and only then the reader waits.
func TestConsumerAsksEachReplicaOnceAndWaits(t *testing.T) {
	for _, code := range []base.Code{base.CodeBehind, base.CodeNotReplica, base.CodeCorruptData} {
		t.Run(code.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				replicated(c)
				fill(t, cl, "orders", 0, 10)
				good := base.NodeID("n2")
				c.spoil = func(b *fakeBroker, _ wire.FetchRange) base.Code {
					if b.node == good {
						return base.CodeOK
					}
					return code
				}
				for salt := range uint64(10) {
					began := time.Now()
					k, end := reader(t, c, salt)
					requireValues(t, collect(t, k, 10), 0)
					require.Zero(t, time.Since(began), "one of three could serve")
					end()
				}
				if code == base.CodeCorruptData {
					return // one that meets nothing else gives up: TestConsumerMeetsDamage
				}
				c.mu.Lock()
				good = ""
				clear(c.asked)
				c.mu.Unlock()
				k, end := reader(t, c, 1)
				defer end()
				time.Sleep(10 * time.Second)
				rounds := 0
				for n, asked := range askedFetch(c) {
					require.InDelta(t, 16, asked, 8, "%s was asked %d times in 10 s", n, asked)
					rounds = max(rounds, asked)
				}
				c.mu.Lock()
				require.InDelta(t, rounds, len(c.asked[wire.KindLocate]), 2, "each round asks who holds the segment now")
				require.Greater(t, len(c.asked[wire.KindRoute]), rounds/2)
				good = "n3"
				c.mu.Unlock()
				began := time.Now()
				requireValues(t, collect(t, k, 10), 0)
				require.LessOrEqual(t, time.Since(began), time.Second)
			})
		})
	}
}

// A reader goes on at another replica when its own dies or falls silent, and moves back when that one is there again.
func TestConsumerMovesToAnotherReplicaAndBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		c.racks = map[base.NodeID]string{"n3": "blue"}
		k, end := reader(t, c, 1)
		defer end()
		sent := 0
		read := func(seconds int) map[base.NodeID]int {
			before := askedFetch(c)
			for range seconds {
				fill(t, cl, "orders", sent, 1)
				requireValues(t, collect(t, k, 1), sent)
				sent++
				time.Sleep(time.Second)
			}
			after := askedFetch(c)
			for n := range after {
				after[n] -= before[n]
			}
			return after
		}
		got := read(10)
		require.Zero(t, got["n1"]+got["n2"], "%v", got)
		c.stop("n3")
		began := time.Now()
		got = read(1)
		require.Less(t, time.Since(began), 1100*time.Millisecond)
		require.Positive(t, got["n1"]+got["n2"], "%v", got)
		c.start("n3")
		read(30)
		got = read(10)
		require.Zero(t, got["n1"]+got["n2"], "%v", got)
	})
}

// What a reader has seen it goes on seeing, whichever replica it reads: one that knows less is left for another, and its
// word that there is nothing more is not taken.
func TestConsumerNeverGoesBackOnAnotherReplica(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := replicated(c)
		for salt := range uint64(4) {
			from := int(salt) * 110
			c.mu.Lock()
			r := topic.ranges[0]
			r.known = nil
			c.mu.Unlock()
			k, end := reader(t, c, salt, WithReadFrom(ReadLeader()), WithStart(AtOffset(1, int64(from))))
			fill(t, cl, "orders", from, 100)
			requireValues(t, collect(t, k, 100), from)
			c.mu.Lock()
			r.known = map[base.NodeID]int64{"n2": int64(from) + 50, "n3": int64(from) + 100}
			c.mu.Unlock()
			c.stop("n1")
			time.Sleep(5 * time.Second)
			require.NoError(t, k.LastError(), "n3 knows all that was seen, and is waited at")
			c.start("n1")
			fill(t, cl, "orders", from+100, 10)
			requireValues(t, collect(t, k, 10), from+100)
			end()
		}
	})
}

// A segment that is sealed is read from any of those who hold it, and the one after it from others.
func TestConsumerReadsEarlierSegmentsFromAnyOfTheirReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := replicated(c)
		c.start("n4")
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		c.roll(topic, 1, "n2", "n4", "n1")
		fill(t, cl, "orders", 100, 100, WithMaxBatchRecords(10))
		c.roll(topic, 1, "n3", "n4", "n2")
		fill(t, cl, "orders", 200, 100, WithMaxBatchRecords(10))
		c.stop("n1") // the leader of the first segment; the others hold it too
		for salt := range uint64(8) {
			k, end := reader(t, c, salt, WithRangeMaxBytes(1000), WithStop(StopAtEnd()))
			n := 0
			for m, err := range k.Records(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, string(value(n)), string(m.Value))
				n++
			}
			require.Equal(t, 300, n)
			end()
		}
	})
}

// From the start on one can read what is there while the leader of the last segment is away; only where it ends is not
// known until somebody leads the range again.
func TestConsumerReadsFromTheStartWithoutALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := replicated(c)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		c.roll(topic, 1, "n2")
		c.stop("n2")
		began := time.Now()
		k, end := reader(t, c, 1, WithStop(StopAtEnd()))
		defer end()
		requireValues(t, collect(t, k, 100), 0)
		require.Zero(t, time.Since(began))
		at, err := k.c.Admin().Offsets(t.Context(), "orders", Earliest())
		require.NoError(t, err)
		require.Equal(t, []Position{{"orders", 1, 0}}, at)
		time.AfterFunc(20*time.Second, func() { c.roll(topic, 1, "n3") })
		for _, err := range k.Records(t.Context()) {
			require.NoError(t, err)
			require.Fail(t, "there is nothing more")
		}
		require.InDelta(t, 20, time.Since(began).Seconds(), 2)
	})
}

// Who was of no use comes last, then whom the reader did not ask for, another rack, a longer way.
func TestDistanceOrder(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ near, far distance }{
		{distance{otherRack: true, band: 9}, distance{away: true}},
		{distance{otherRack: true, band: 9}, distance{behind: true}},
		{distance{band: 9}, distance{otherRack: true}},
		{distance{band: band(3 * ms), tie: 9}, distance{band: band(8 * ms)}},
		{distance{tie: 1}, distance{tie: 2}},
	} {
		require.Negative(t, tc.near.compare(tc.far), "%+v %+v", tc.near, tc.far)
		require.Positive(t, tc.far.compare(tc.near))
		require.Zero(t, tc.near.compare(tc.near))
		require.Equal(t, tc.near.tie == 0 || tc.near.band != tc.far.band, tc.near.nearer(tc.far), "a tie is not worth a move")
	}
	require.Equal(t, []int{0, 0, 1, 2, 3}, []int{band(0), band(999 * time.Microsecond), band(ms), band(2 * ms), band(7 * ms)})
}

// One client reads its ranges from different replicas.
func TestTiesSpreadTheRangesOfOneClient(t *testing.T) {
	c := &Client{salt: 7}
	first := make(map[base.NodeID]int)
	for i := range 300 {
		ref := base.RangeRef{Topic: base.TopicID{1}, Range: base.RangeID(i)}
		best := base.NodeID("")
		for n := range 3 {
			node := base.NodeID(fmt.Sprintf("n%d", n))
			if best == "" || c.tie(ref, node) < c.tie(ref, best) {
				best = node
			}
		}
		first[best]++
	}
	for n, times := range first {
		require.InDelta(t, 100, times, 40, n)
	}
}

// A replica that says nothing is left before its connection is given up, and before anybody else has noticed.
func TestConsumerLeavesAReplicaThatIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		c.racks = map[base.NodeID]string{"n3": "blue"}
		k, end := reader(t, c, 1)
		defer end()
		fill(t, cl, "orders", 0, 10)
		requireValues(t, collect(t, k, 10), 0)
		time.Sleep(10 * time.Second)
		require.Equal(t, base.NodeID("n3"), k.cursors[0].broker.node())
		c.freeze("n3", true)
		fill(t, cl, "orders", 10, 10)
		began := time.Now()
		requireValues(t, collect(t, k, 10), 10)
		require.LessOrEqual(t, time.Since(began), DefaultMaxWait+2*fetchLate+50*time.Millisecond)
		for i := range 10 { // and is not gone back to while it is silent
			fill(t, cl, "orders", 20+i, 1)
			began := time.Now()
			requireValues(t, collect(t, k, 1), 20+i)
			require.Less(t, time.Since(began), 10*time.Millisecond)
			time.Sleep(2 * time.Second)
		}
		c.freeze("n3", false)
		time.Sleep(time.Minute)
		require.Equal(t, base.NodeID("n3"), k.cursors[0].broker.node())
	})
}

// A consumer reads on from the copies that are left when bytes that it was sent turn out to be damaged.
func TestConsumerLeavesADamagedCopyThatItsBrokerTakesForWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		c.racks = map[base.NodeID]string{"n2": "blue"}
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		c.mu.Lock()
		c.garble = func(b *fakeBroker, batch []byte) []byte {
			if b.node != "n2" {
				return batch
			}
			spoiled := append([]byte(nil), batch...)
			spoiled[len(spoiled)-1] ^= 1
			return spoiled
		}
		c.mu.Unlock()
		k, end := reader(t, c, 1, WithRangeMaxBytes(1000))
		defer end()
		requireValues(t, collect(t, k, 100), 0)
		require.Positive(t, askedFetch(c)["n2"], "which was tried first")
	})
}

// What the node of choice holds no copy of, though it is listed as a replica, comes from the others, until it has one.
func TestConsumerOfANodeThatHoldsNoCopy(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		fill(t, cl, "orders", 0, 10)
		c.mu.Lock()
		c.spoil = func(b *fakeBroker, _ wire.FetchRange) base.Code {
			if b.node == "n3" {
				return base.CodeNotReplica
			}
			return base.CodeOK
		}
		c.mu.Unlock()
		k, end := reader(t, c, 1, WithReadFrom(ReadNode("n3")))
		defer end()
		began := time.Now()
		requireValues(t, collect(t, k, 10), 0)
		require.Less(t, time.Since(began), time.Second)
		c.mu.Lock()
		c.spoil = nil
		c.mu.Unlock()
		time.Sleep(30 * time.Second)
		before := askedFetch(c)
		time.Sleep(10 * time.Second)
		fill(t, cl, "orders", 10, 10)
		requireValues(t, collect(t, k, 10), 10)
		after := askedFetch(c)
		require.Greater(t, after["n3"], before["n3"], "it has one by now")
		require.Equal(t, before["n1"]+before["n2"], after["n1"]+after["n2"])
	})
}
