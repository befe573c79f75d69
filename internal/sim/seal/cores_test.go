package seal

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

// now is the time that stands still: what time alone would do (a replica is late, a link stays down) is a step of its
// own, which may come at any moment.
var now time.Time

// leads is one state of one segment's leader.
type leads struct {
	core *replica.Leader[uint8]
	name string // of its segment and replica set
}

// leadEvent is one call of a leader.
type leadEvent struct {
	of   coreID
	kind leadKind
	node uint8
	arg  uint8 // payload, or an end
}

type leadKind uint8

const (
	leadAppend leadKind = iota + 1
	leadDurable
	leadAck
	leadLost
	leadFreeze
	leadFreezeIfLost
	leadDrain
	leadSealed
)

// led is what a call came to.
type led struct {
	next  coreID
	ready replica.Ready[uint8]
	err   error
}

// follows is one state of one segment's follower.
type follows struct {
	core replica.Follower
	seg  int
}

// cores remembers each state of a core that was ever met, and each call.
type cores struct {
	leads     []leads
	leadIDs   map[string]coreID
	leadCalls map[leadEvent]led
	follows   []follows
	followIDs map[follows]coreID
}

func newCores() *cores {
	return &cores{
		leads: make([]leads, retired+1), leadIDs: make(map[string]coreID), leadCalls: make(map[leadEvent]led),
		follows: make([]follows, 1), followIDs: make(map[follows]coreID),
	}
}

// newLeader is what the shell makes when a segment's open record is durable.
func (c *cores) newLeader(seg int, s *segment) coreID {
	return c.keepLead(leads{core: replica.NewLeader[uint8](leadConfig(s)), name: fmt.Sprint(seg, s.Replicas)})
}

// resumed is what it makes of a leader that was dropped: all up to next is committed.
func (c *cores) resumed(seg int, s *segment, next int) coreID {
	return c.keepLead(leads{core: replica.Resume[uint8](leadConfig(s), int64(next)), name: fmt.Sprint(seg, s.Replicas)})
}

func leadConfig(s *segment) replica.Config {
	cfg := replica.Config{Self: s.Replicas[0].Node, Base: s.Base}
	for _, r := range s.Replicas[1:] {
		cfg.Followers = append(cfg.Followers, r.Node)
	}
	return cfg
}

func (c *cores) keepLead(l leads) coreID {
	if err := l.core.Check(); err != nil {
		panic(err)
	}
	key := l.core.AppendKey([]byte(l.name))
	l.core.Each(func(payload uint8) bool {
		key = append(key, payload)
		return true
	})
	id, ok := c.leadIDs[string(key)]
	if !ok {
		id = coreID(len(c.leads))
		c.leads = append(c.leads, l)
		c.leadIDs[string(key)] = id
	}
	return id
}

// lead makes one call of a leader, or remembers what came of it.
func (c *cores) lead(e leadEvent) led {
	if r, ok := c.leadCalls[e]; ok {
		return r
	}
	from := c.leads[e.of]
	l := from.core.Clone()
	var r led
	switch e.kind {
	case leadAppend:
		l.Append(1, 1, e.arg)
	case leadDurable:
		l.LocalDurable(int64(e.arg), now)
	case leadAck:
		l.FollowerAck(nodeName(int(e.node)), int64(e.arg), now)
	case leadLost:
		l.FollowerLost(nodeName(int(e.node)), now)
	case leadFreeze:
		l.Freeze(base.CauseReplicaFailure, nil, now)
	case leadFreezeIfLost:
		l.FreezeIfLost(now)
	case leadDrain:
		l.Drain(base.CauseAge, now)
	case leadSealed:
		r.err = l.Sealed(int64(e.arg))
	}
	r.ready = l.Ready()
	r.next = c.keepLead(leads{core: l, name: from.name})
	c.leadCalls[e] = r
	return r
}

// follow makes one call of a follower. They are values and cheap: only their states are remembered.
func (c *cores) follow(id coreID, call func(f *replica.Follower)) (coreID, replica.FollowerReady) {
	f := c.follows[id]
	call(&f.core)
	ready := f.core.Ready()
	if err := f.core.Check(); err != nil {
		panic(err)
	}
	return c.keepFollow(f), ready
}

func (c *cores) newFollower(seg int, s *segment) coreID {
	return c.keepFollow(follows{core: *replica.NewFollower(s.Base), seg: seg})
}

func (c *cores) keepFollow(f follows) coreID {
	id, ok := c.followIDs[f]
	if !ok {
		id = coreID(len(c.follows))
		c.follows = append(c.follows, f)
		c.followIDs[f] = id
	}
	return id
}
