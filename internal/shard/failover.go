package shard

import (
	"cmp"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Failover does not wait for raft's timers. What follows is the part that decides, and nothing else: it is told what
// the connections say, what the other voters answered and what time it is, and says whom to ask and which of our own
// replicas to let stand for election. It starts nothing, waits for nothing and may be stepped at any time.
const (
	silentFor    = 300 * time.Millisecond // a node that was not heard for so long is lost, as is one that refuses
	leaderless   = 300 * time.Millisecond // after which a replica that knows no leader asks
	askEvery     = 100 * time.Millisecond
	turnEvery    = 300 * time.Millisecond // between the candidates, the longest log first; doubles with each that came to nothing
	turnDoubles  = 4                      // times at most: to 4.8 s, more than an election on any disk that is of use
	graceFor     = 50 * time.Millisecond  // for those that do not agree yet
	evidenceFor  = 350 * time.Millisecond // how long an answer counts
	changesKept  = 10 * time.Second
	changesMost  = 2               // changes of the leader within changesKept, above which raft's own timers must do
	candidateFor = 1 * time.Second // after which an election that came to nothing is repeated
)

// replicaView is what the decision needs to know of one replica here, at one moment.
type replicaView struct {
	Shard      base.ShardID
	Generation uint64
	Voters     []base.NodeID // ourselves among them if we vote
	State      string        // of raft: follower, candidate, leader
	Leader     base.NodeID   // as this replica knows; "" without
	Term       uint64
	LastTerm   uint64
	LastIndex  uint64
	Voting     bool // raft is busy with somebody's candidacy, which on a slow disk takes several syncs
}

// question asks a voter of a group whether it has lost the leader too. It also says so of the asker.
type question struct {
	Shard      base.ShardID `cbor:"1,keyasint"`
	Generation uint64       `cbor:"2,keyasint,omitempty"`
	Leader     base.NodeID  `cbor:"3,keyasint,omitempty"` // who is lost; "" when the asker knows of none
	Term       uint64       `cbor:"4,keyasint"`
	LastTerm   uint64       `cbor:"5,keyasint"`
	LastIndex  uint64       `cbor:"6,keyasint"`
}

// opinion is the answer, or what a question says of who asks it.
type opinion struct {
	Hosted    bool   `cbor:"1,keyasint,omitempty"` // a replica of that generation is there, with a configuration
	Lost      bool   `cbor:"2,keyasint,omitempty"` // it has lost the leader in question and knows no other
	LastTerm  uint64 `cbor:"3,keyasint,omitempty"`
	LastIndex uint64 `cbor:"4,keyasint,omitempty"`
}

// world is what the connections say. Lost: silent for silentFor, or refusing. Down: the connection has given the node
// up, which is what begins a failover.
type world struct {
	Self base.NodeID
	Lost func(base.NodeID) bool
	Down func(base.NodeID) bool
}

// answerTo is one replica's opinion on a question from a node.
func (w world) answerTo(q question, asker base.NodeID, r replicaView) opinion {
	o := opinion{Hosted: len(r.Voters) > 0, LastTerm: r.LastTerm, LastIndex: r.LastIndex}
	// A leader that we know and that is alive speaks against; who asks does not lead, whatever we think.
	knows := r.Leader != "" && r.Leader != asker && (r.Leader == w.Self || !w.Lost(r.Leader))
	o.Lost = !knows && (q.Leader == "" || q.Leader == asker || w.Lost(q.Leader))
	return o
}

// failover is the state between steps.
type failover struct {
	groups map[base.ShardID]*vigil
}

// vigil is what is known of one group's leadership.
type vigil struct {
	term     uint64      // of the leader known last
	seen     uint64      // term of the replica at the last look
	moved    time.Time   // when that changed and nobody led: somebody stands, and has until its turn is over
	tries    int         // how often it has changed since somebody led
	changes  []time.Time // of the leader, oldest first
	missing  time.Time   // since when there is none that is alive; zero: there is
	asked    time.Time
	majority time.Time // since when a majority agrees that there is none; zero: it does not
	stood    time.Time // when our replica was let stand last, in this vigil
	standing time.Time // since when it is a candidate
	opinions map[base.NodeID]heardOpinion
}

type heardOpinion struct {
	opinion
	leader base.NodeID // the one that was asked about
	at     time.Time
}

// decision is what to do now.
type decision struct {
	Ask   map[base.NodeID][]question // by node, so that many groups share a message
	Stand []base.ShardID             // let our own replica stand for election
}

func newFailover() *failover { return &failover{groups: make(map[base.ShardID]*vigil)} }

// heard notes an opinion about a leader.
func (f *failover) heard(now time.Time, from base.NodeID, shard base.ShardID, leader base.NodeID, o opinion) {
	f.vigil(shard).opinions[from] = heardOpinion{opinion: o, leader: leader, at: now}
}

func (f *failover) vigil(shard base.ShardID) *vigil {
	v := f.groups[shard]
	if v == nil {
		v = &vigil{opinions: make(map[base.NodeID]heardOpinion)}
		f.groups[shard] = v
	}
	return v
}

// step looks at all replicas here.
func (f *failover) step(now time.Time, w world, replicas []replicaView) decision {
	d := decision{Ask: make(map[base.NodeID][]question)}
	here := make(map[base.ShardID]bool, len(replicas))
	for _, r := range replicas {
		here[r.Shard] = true
		f.look(now, w, r, &d)
	}
	for shard := range f.groups {
		if !here[shard] {
			delete(f.groups, shard)
		}
	}
	return d
}

// idle reports whether nothing is being decided, so that the next step can wait for an event.
func (f *failover) idle() bool {
	for _, v := range f.groups {
		if !v.missing.IsZero() {
			return false
		}
	}
	return true
}

func (f *failover) look(now time.Time, w world, r replicaView, d *decision) {
	v := f.vigil(r.Shard)
	v.note(now, r)
	alive := r.Leader != "" && (r.Leader == w.Self || !w.Down(r.Leader))
	if alive || !slices.Contains(r.Voters, w.Self) {
		v.missing, v.majority, v.stood = time.Time{}, time.Time{}, time.Time{}
		return
	}
	if v.missing.IsZero() {
		v.missing = now
	}
	if r.Leader == "" && now.Sub(v.missing) < leaderless {
		return
	}
	agree := v.agreeing(now, w, r)
	// Who has not lost the leader itself has no place in line yet, however many others have.
	if _, lost := agree[w.Self]; !lost || len(agree) <= len(r.Voters)/2 {
		v.majority = time.Time{}
		v.ask(now, w, r, d)
		return
	}
	if v.majority.IsZero() {
		v.majority = now
	}
	// The agreement must hold until our turn comes, so it is renewed.
	v.ask(now, w, r, d)
	place := time.Duration(rank(w.Self, agree, r)) * v.turn()
	if now.Sub(v.majority) < place || now.Sub(v.majority) < graceFor && !unanimous(w, r, agree) || !v.mayStand(now, r, place) {
		return
	}
	v.stood = now
	d.Stand = append(d.Stand, r.Shard)
}

// note keeps what changes.
func (v *vigil) note(now time.Time, r replicaView) {
	if r.Leader != "" && r.Term > v.term {
		if v.term != 0 {
			v.changes = append(v.changes, now)
		}
		v.term = r.Term
	}
	if r.Term != v.seen {
		if v.seen != 0 {
			v.moved = now
			v.tries++
		}
		v.seen = r.Term
	}
	if r.Leader != "" { // the last election has come to something: nobody has to be left alone
		v.moved, v.tries = time.Time{}, 0
	}
	v.changes = slices.DeleteFunc(v.changes, func(t time.Time) bool { return now.Sub(t) > changesKept })
	switch {
	case r.State != "candidate":
		v.standing = time.Time{}
	case v.standing.IsZero():
		v.standing = now
	}
}

// agreeing are the voters that have lost the leader in question, ourselves among them if we have, with their logs.
func (v *vigil) agreeing(now time.Time, w world, r replicaView) map[base.NodeID]opinion {
	agree := make(map[base.NodeID]opinion)
	if r.Leader == "" || w.Lost(r.Leader) {
		agree[w.Self] = opinion{Hosted: true, Lost: true, LastTerm: r.LastTerm, LastIndex: r.LastIndex}
	}
	for node, o := range v.opinions {
		if now.Sub(o.at) > evidenceFor {
			delete(v.opinions, node)
			continue
		}
		if o.Lost && o.Hosted && o.leader == r.Leader && slices.Contains(r.Voters, node) {
			agree[node] = o.opinion
		}
	}
	return agree
}

// ask asks the other voters, at most every askEvery.
func (v *vigil) ask(now time.Time, w world, r replicaView, d *decision) {
	if now.Sub(v.asked) < askEvery {
		return
	}
	v.asked = now
	for _, node := range r.Voters {
		if node != w.Self && node != r.Leader && !w.Down(node) {
			d.Ask[node] = append(d.Ask[node], question{
				Shard: r.Shard, Generation: r.Generation, Leader: r.Leader, Term: r.Term, LastTerm: r.LastTerm, LastIndex: r.LastIndex,
			})
		}
	}
}

// unanimous reports whether everybody agrees who can speak. Who does not may just not have noticed yet, and be first in
// line.
func unanimous(w world, r replicaView, agree map[base.NodeID]opinion) bool {
	return !slices.ContainsFunc(r.Voters, func(n base.NodeID) bool {
		_, agrees := agree[n]
		return n != w.Self && n != r.Leader && !agrees && !w.Down(n)
	})
}

// turn is how long whoever stands is left alone. An election is some six syncs, one after the other: with a fixed turn
// the next one would spoil each of them on a disk that is slow enough, for ever.
func (v *vigil) turn() time.Duration {
	return turnEvery << min(max(v.tries-1, 0), turnDoubles)
}

// mayStand reports whether the replica may stand for election now, with the place in line that it has. Whoever stands
// has until the end of its turn, and then the next in line stands, not all at the same moment. A candidate may stand
// again once its election has come to nothing. A group whose leader changes all the time is left to raft's timers.
func (v *vigil) mayStand(now time.Time, r replicaView, place time.Duration) bool {
	if len(v.changes) > changesMost || r.Voting || now.Sub(v.moved) < v.turn()+place {
		return false
	}
	switch r.State {
	case "follower":
		return v.stood.IsZero() || now.Sub(v.stood) >= v.turn()
	case "candidate":
		again := max(candidateFor, v.turn()) + place
		return now.Sub(v.standing) >= again && now.Sub(v.stood) >= again
	}
	return false
}

// rank is a voter's place among those that agree: the longest log first, and of equal ones by an order that begins
// elsewhere in each group, so that the groups of a lost node spread over the others.
func rank(self base.NodeID, agree map[base.NodeID]opinion, r replicaView) int {
	order := slices.Sorted(slices.Values(r.Voters))
	rotated := func(n base.NodeID) int {
		i, _ := slices.BinarySearch(order, n)
		return (i + len(order) - int(r.Shard.Root)%len(order)) % len(order)
	}
	nodes := make([]base.NodeID, 0, len(agree))
	for n := range agree {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b base.NodeID) int {
		x, y := agree[a], agree[b]
		return cmp.Or(cmp.Compare(y.LastTerm, x.LastTerm), cmp.Compare(y.LastIndex, x.LastIndex), cmp.Compare(rotated(a), rotated(b)))
	})
	return slices.Index(nodes, self)
}
