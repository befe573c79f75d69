package sdk

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// nearRTT is the round trip below which replicas are equally near: what differs there is scheduling, not distance. Above
// it they count as equally near within a factor of two.
const nearRTT = time.Millisecond

// remeasure is how old a measured round trip may get.
const remeasure = 10 * time.Second

// distance says how far a replica is from a reader. It is compared field by field; less is better.
type distance struct {
	away      bool   // could not be reached just now, or has just been of no use
	behind    bool   // others come first by what the reader asked for
	otherRack bool   // in another rack
	band      int    // of its round trip
	tie       uint64 // spreads readers over replicas that are equally near
}

func (d distance) compare(o distance) int {
	for _, pair := range [][2]bool{{d.away, o.away}, {d.behind, o.behind}, {d.otherRack, o.otherRack}} {
		if pair[0] != pair[1] {
			if pair[1] {
				return -1
			}
			return 1
		}
	}
	if d.band != o.band {
		return d.band - o.band
	}
	switch {
	case d.tie < o.tie:
		return -1
	case d.tie > o.tie:
		return 1
	}
	return 0
}

// nearer reports whether a replica at d is worth leaving one at o for: a tie is not.
func (d distance) nearer(o distance) bool {
	d.tie, o.tie = 0, 0
	return d.compare(o) < 0
}

// band is 0 up to nearRTT, and grows by one each time the round trip doubles. One that was not measured yet counts as near:
// trying it is how it gets measured.
func band(rtt time.Duration) int { return bits.Len64(uint64(rtt / nearRTT)) }

// order sorts the replicas of a segment by how gladly a reader would read from them. shunned tells who has been of no use
// to it lately. It does not touch replicas.
func (c *Client) order(from ReadFrom, ref base.RangeRef, replicas []base.NodeID, shunned func(base.NodeID) bool) []base.NodeID {
	if from.kind == readNode && slices.Contains(replicas, from.node) {
		return []base.NodeID{from.node}
	}
	at := make(map[base.NodeID]distance, len(replicas))
	for i, n := range replicas {
		at[n] = c.distance(from, ref, n, i == 0, shunned(n))
	}
	sorted := slices.Clone(replicas)
	slices.SortStableFunc(sorted, func(a, b base.NodeID) int { return at[a].compare(at[b]) })
	return sorted
}

func (c *Client) distance(from ReadFrom, ref base.RangeRef, n base.NodeID, leader, shunned bool) distance {
	d := distance{away: shunned, behind: from.kind == readLeader && !leader || from.kind == readNode && n != from.node, tie: c.tie(ref, n)}
	addr, rack := c.brokers.whereabouts(n)
	d.otherRack = c.cfg.rack != "" && rack != c.cfg.rack
	if addr == "" {
		d.away = true
		return d
	}
	b := c.brokers.at(addr)
	d.away = d.away || b.resting()
	d.band = band(time.Duration(b.rtt.Load()))
	return d
}

// tie is the same for one client, range and node at all times, and has nothing to do with any other.
func (c *Client) tie(ref base.RangeRef, n base.NodeID) uint64 {
	key := make([]byte, 0, 64)
	key = binary.BigEndian.AppendUint64(key, c.salt)
	key = append(key, ref.Topic[:]...)
	key = binary.BigEndian.AppendUint32(key, uint32(ref.Range))
	return keyspace.HashKey(append(key, n...))
}

// measure times a ping on the connection, unless that was done a moment ago. It does not wait for it.
func (b *broker) measure() {
	conn, now := b.live(), time.Now()
	if last := b.measured.Load(); conn == nil || last != 0 && now.Sub(time.Unix(0, last)) < remeasure {
		return
	}
	b.measured.Store(now.UnixNano())
	_, _ = conn.Go(wire.KindPing, wire.Encode(wire.PingRequest{}), nil, func(_ mux.Response, err error) {
		if err != nil {
			return // whoever uses the connection for more than this finds out
		}
		rtt := time.Since(now)
		if old := time.Duration(b.rtt.Load()); old > 0 {
			rtt = (3*old + rtt) / 4
		}
		b.rtt.Store(int64(max(rtt, 1)))
	})
}
