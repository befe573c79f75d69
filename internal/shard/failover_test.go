package shard

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// The decision alone, without hosts: what it is told and what comes of it.

var at0 = time.Unix(1_000_000, 0)

func nodes(n int) []base.NodeID {
	var list []base.NodeID
	for i := range n {
		list = append(list, base.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	return list
}

// sees makes a world in which a node has lost and given up the given ones.
func sees(self base.NodeID, lost ...base.NodeID) world {
	gone := func(n base.NodeID) bool { return slices.Contains(lost, n) }
	return world{Self: self, Lost: gone, Down: gone}
}

func follower(voters []base.NodeID, leader base.NodeID, term, last uint64) replicaView {
	return replicaView{Voters: voters, State: "follower", Leader: leader, Term: term, LastTerm: term, LastIndex: last}
}

func asked(d decision) []base.NodeID {
	var list []base.NodeID
	for n := range d.Ask {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func TestAHealthyLeaderConcernsNobody(t *testing.T) {
	f := newFailover()
	for i := range 100 {
		d := f.step(at0.Add(time.Duration(i)*50*time.Millisecond), sees("n2"), []replicaView{follower(nodes(3), "n1", 5, 9)})
		require.Empty(t, d.Ask)
		require.Empty(t, d.Stand)
	}
	require.True(t, f.idle())
}

func TestTheLongestLogStandsFirst(t *testing.T) {
	for _, c := range []struct {
		mine, theirs opinion
		turn         time.Duration
	}{
		{opinion{LastTerm: 5, LastIndex: 9}, opinion{LastTerm: 5, LastIndex: 8}, 0},
		{opinion{LastTerm: 5, LastIndex: 9}, opinion{LastTerm: 4, LastIndex: 12}, 0},
		{opinion{LastTerm: 5, LastIndex: 9}, opinion{LastTerm: 5, LastIndex: 10}, turnEvery},
		{opinion{LastTerm: 5, LastIndex: 9}, opinion{LastTerm: 6, LastIndex: 1}, turnEvery},
	} {
		f := newFailover()
		r := follower(nodes(3), "n1", 5, c.mine.LastIndex)
		stood := time.Duration(-1)
		for i := range 40 {
			at := time.Duration(i) * 25 * time.Millisecond
			d := f.step(at0.Add(at), sees("n2", "n1"), []replicaView{r})
			if len(d.Ask) > 0 {
				require.Equal(t, []base.NodeID{"n3"}, asked(d), "not the lost one")
				c.theirs.Hosted, c.theirs.Lost = true, true
				f.heard(at0.Add(at), "n3", r.Shard, "n1", c.theirs)
			}
			if len(d.Stand) > 0 && stood < 0 {
				stood = at
			}
		}
		require.GreaterOrEqual(t, stood, c.turn)
		require.LessOrEqual(t, stood, c.turn+50*time.Millisecond, "%+v", c)
	}
}

// TestTiesGoRound: with equal logs exactly one stands at once, and over the groups everybody is first somewhere.
func TestTiesGoRound(t *testing.T) {
	first := map[base.NodeID]int{}
	for root := range uint16(30) {
		var stand []base.NodeID
		for _, self := range []base.NodeID{"n2", "n3"} {
			f := newFailover()
			r := follower(nodes(3), "n1", 5, 9)
			r.Shard.Root = root
			o := opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 9}
			for _, other := range []base.NodeID{"n2", "n3"} {
				if other != self {
					f.heard(at0, other, r.Shard, "n1", o)
				}
			}
			if d := f.step(at0, sees(self, "n1"), []replicaView{r}); len(d.Stand) > 0 {
				stand = append(stand, self)
			}
		}
		require.Len(t, stand, 1, "group %d", root)
		first[stand[0]]++
	}
	require.Greater(t, first["n2"], 5)
	require.Greater(t, first["n3"], 5)
}

// TestOnlyAMajorityThatLostTheLeaderDeposesIt goes through every combination of opinions of three and five voters.
func TestOnlyAMajorityThatLostTheLeaderDeposesIt(t *testing.T) {
	opinions := []opinion{{}, {Hosted: true}, {Lost: true}, {Hosted: true, Lost: true}} // the last one alone counts
	for _, n := range []int{1, 2, 3, 4, 5} {
		voters := nodes(n)
		self := voters[n-1]
		others := voters[:max(n-1, 0)] // the first leads
		combinations := 1
		for range others {
			combinations *= len(opinions) + 1
		}
		for combination := range combinations {
			for _, state := range []string{"follower", "leader", "shutdown"} {
				for _, lost := range []bool{true, false} {
					f := newFailover()
					agree, rest := 0, combination
					for _, o := range others {
						if k := rest % (len(opinions) + 1); k < len(opinions) {
							f.heard(at0, o, base.RootShard, "n1", opinions[k])
							if opinions[k].Hosted && opinions[k].Lost {
								agree++
							}
						}
						rest /= len(opinions) + 1
					}
					w := sees(self)
					if lost {
						w = sees(self, "n1")
						agree++
					}
					r := follower(voters, "n1", 5, 9)
					r.State = state
					r.LastIndex = 10 // first in line
					d := f.step(at0, w, []replicaView{r})
					if later := f.step(at0.Add(graceFor), w, []replicaView{r}); len(d.Stand) == 0 { // not all have spoken
						d = later
					}
					want := n > 1 && lost && state == "follower" && agree > n/2
					require.Equal(t, want, len(d.Stand) == 1, "%d voters, opinions %d, %s, lost %v", n, combination, state, lost)
				}
			}
		}
	}
}

func TestWhoHasNoVoteDoesNothing(t *testing.T) {
	f := newFailover()
	for _, voters := range [][]base.NodeID{nil, nodes(3)[:2]} {
		r := follower(voters, "", 0, 0)
		for i := range 50 {
			d := f.step(at0.Add(time.Duration(i)*100*time.Millisecond), sees("n3", "n1"), []replicaView{r})
			require.Empty(t, d.Ask)
			require.Empty(t, d.Stand)
		}
	}
}

// TestWithoutALeaderItBeginsAfterAWhile is the start of a cluster.
func TestWithoutALeaderItBeginsAfterAWhile(t *testing.T) {
	f := newFailover()
	r := follower(nodes(3), "", 5, 9)
	for i := range 100 {
		at := time.Duration(i) * 10 * time.Millisecond
		d := f.step(at0.Add(at), sees("n1"), []replicaView{r})
		if at < leaderless {
			require.Empty(t, d.Ask, "at %s", at)
			continue
		}
		if len(d.Ask) > 0 {
			require.Equal(t, []base.NodeID{"n2", "n3"}, asked(d))
			f.heard(at0.Add(at), "n3", r.Shard, "", opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 8})
		}
		if len(d.Stand) > 0 {
			require.LessOrEqual(t, at, leaderless+graceFor+20*time.Millisecond)
			return
		}
	}
	t.Fatal("it never stood")
}

// TestNobodyAnswers: it asks again and again, at most every askEvery.
func TestNobodyAnswers(t *testing.T) {
	f := newFailover()
	asks := 0
	for i := range 100 {
		d := f.step(at0.Add(time.Duration(i)*10*time.Millisecond), sees("n2", "n1"), []replicaView{follower(nodes(3), "n1", 5, 9)})
		asks += len(d.Ask)
		require.Empty(t, d.Stand)
	}
	require.Equal(t, 10, asks)
}

func TestAnOldAnswerDoesNotCount(t *testing.T) {
	f := newFailover()
	f.heard(at0, "n3", base.RootShard, "n1", opinion{Hosted: true, Lost: true})
	late := at0.Add(evidenceFor + time.Millisecond)
	require.Empty(t, f.step(late, sees("n2", "n1"), []replicaView{follower(nodes(3), "n1", 5, 9)}).Stand)
	// Nor does one about another leader.
	f.heard(late, "n3", base.RootShard, "n4", opinion{Hosted: true, Lost: true})
	require.Empty(t, f.step(late, sees("n2", "n1"), []replicaView{follower(nodes(3), "n1", 5, 9)}).Stand)
}

// TestAGroupThatChangesItsLeaderAllTheTimeIsLeftAlone for as long as it does.
func TestAGroupThatChangesItsLeaderAllTheTimeIsLeftAlone(t *testing.T) {
	f := newFailover()
	now := at0
	stands := func(term uint64) bool {
		leader := []base.NodeID{"n1", "n3"}[term%2]
		f.step(now, sees("n2"), []replicaView{follower(nodes(3), leader, term, 9)})
		now = now.Add(turnEvery) // the election is over
		f.heard(now, "n1", base.RootShard, leader, opinion{Hosted: true, Lost: true})
		f.heard(now, "n3", base.RootShard, leader, opinion{Hosted: true, Lost: true})
		return len(f.step(now, sees("n2", leader), []replicaView{follower(nodes(3), leader, term, 9)}).Stand) > 0
	}
	require.True(t, stands(1))
	for term := uint64(2); term <= 3; term++ {
		now = now.Add(time.Second)
		require.True(t, stands(term), "change %d", term-1)
	}
	now = now.Add(time.Second)
	require.False(t, stands(4), "the third change within ten seconds")
	now = now.Add(changesKept)
	require.True(t, stands(4))
}

// TestWhoStandsIsGivenTime: a term that has just begun belongs to somebody.
func TestWhoStandsIsGivenTime(t *testing.T) {
	f := newFailover()
	lost := opinion{Hosted: true, Lost: true}
	f.step(at0, sees("n2", "n1"), []replicaView{follower(nodes(3), "n1", 5, 9)})
	for i := 1; ; i++ {
		now := at0.Add(time.Duration(i) * 10 * time.Millisecond)
		f.heard(now, "n3", base.RootShard, "", lost)
		r := follower(nodes(3), "", 6, 9) // n3 has asked for our vote
		r.LastTerm = 5
		if d := f.step(now, sees("n2", "n1"), []replicaView{r}); len(d.Stand) > 0 {
			require.GreaterOrEqual(t, now.Sub(at0), turnEvery)
			return
		}
		require.Less(t, i, 100)
	}
}

// TestALeaderThatHasJustBegunIsReplacedAtOnce: its term has just begun too, but belongs to nobody any more. Both who are
// left would otherwise wait for its end, and stand at the same moment.
func TestALeaderThatHasJustBegunIsReplacedAtOnce(t *testing.T) {
	stood := make(map[base.NodeID]time.Duration)
	for _, self := range []base.NodeID{"n2", "n3"} {
		f := newFailover()
		f.step(at0, sees(self), []replicaView{follower(nodes(3), "n2", 5, 9)})
		f.step(at0.Add(10*time.Millisecond), sees(self), []replicaView{follower(nodes(3), "", 6, 9)}) // n1 has asked for our vote
		f.step(at0.Add(20*time.Millisecond), sees(self), []replicaView{follower(nodes(3), "n1", 6, 10)})
		other := map[base.NodeID]base.NodeID{"n2": "n3", "n3": "n2"}[self]
		for at := 50 * time.Millisecond; at < time.Second; at += 10 * time.Millisecond {
			now := at0.Add(at)
			f.heard(now, other, base.RootShard, "n1", opinion{Hosted: true, Lost: true, LastTerm: 6, LastIndex: 10})
			d := f.step(now, sees(self, "n1"), []replicaView{follower(nodes(3), "n1", 6, 10)})
			if _, before := stood[self]; len(d.Stand) > 0 && !before {
				stood[self] = at
			}
		}
	}
	require.Equal(t, 50*time.Millisecond, stood["n2"], "first in line")
	require.Equal(t, 50*time.Millisecond+turnEvery, stood["n3"], "when its turn has come")
}

// TestEachElectionThatCameToNothingDoublesTheTurn, so that on a disk of any speed one is long enough.
func TestEachElectionThatCameToNothingDoublesTheTurn(t *testing.T) {
	f := newFailover()
	r := follower(nodes(3), "n1", 5, 9)
	var pauses []time.Duration
	moved := at0
	for i := 0; len(pauses) < 8; i++ {
		now := at0.Add(time.Duration(i) * 10 * time.Millisecond)
		require.Less(t, now.Sub(at0), 2*time.Minute)
		f.heard(now, "n3", r.Shard, r.Leader, opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 8})
		if d := f.step(now, sees("n2", "n1"), []replicaView{r}); len(d.Stand) > 0 {
			pauses = append(pauses, now.Sub(moved))
			moved = now
			r.Leader, r.LastTerm = "", 5
			r.Term++ // and nobody won
		}
	}
	for i, pause := range pauses[1:] {
		want := turnEvery << min(i, turnDoubles)
		require.InDelta(t, want.Milliseconds(), pause.Milliseconds(), 20, "pause %d of %v", i, pauses)
	}
	r.Leader = "n3" // somebody leads at last: all is forgotten
	f.step(moved.Add(time.Minute), sees("n2", "n1"), []replicaView{r})
	now := moved.Add(2 * time.Minute)
	f.heard(now, "n1", r.Shard, "n3", opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 8})
	require.Len(t, f.step(now, sees("n2", "n3"), []replicaView{r}).Stand, 1)
}

// TestWhoIsAskedForAVoteDoesNotStand: raft would do the one after the other, and spoil the election it has just voted in.
func TestWhoIsAskedForAVoteDoesNotStand(t *testing.T) {
	f := newFailover()
	r := follower(nodes(3), "n1", 5, 9)
	r.Voting = true
	f.heard(at0, "n3", r.Shard, "n1", opinion{Hosted: true, Lost: true})
	require.Empty(t, f.step(at0, sees("n2", "n1"), []replicaView{r}).Stand)
	r.Voting = false
	require.Len(t, f.step(at0, sees("n2", "n1"), []replicaView{r}).Stand, 1)
}

// TestACandidateWhoseElectionCameToNothingTriesAgain.
func TestACandidateWhoseElectionCameToNothingTriesAgain(t *testing.T) {
	f := newFailover()
	r := follower(nodes(3), "", 5, 9)
	r.State = "candidate"
	var stood []time.Duration
	for i := range 300 {
		at := time.Duration(i) * 10 * time.Millisecond
		f.heard(at0.Add(at), "n3", r.Shard, "", opinion{Hosted: true, Lost: true})
		if d := f.step(at0.Add(at), sees("n2", "n1"), []replicaView{r}); len(d.Stand) > 0 {
			stood = append(stood, at)
		}
	}
	require.Greater(t, len(stood), 1)
	require.GreaterOrEqual(t, stood[0], candidateFor)
	require.GreaterOrEqual(t, stood[1]-stood[0], candidateFor)
}

func TestAnOpinion(t *testing.T) {
	voters := nodes(3)
	for _, c := range []struct {
		what  string
		q     question
		asker base.NodeID
		mine  replicaView
		lost  []base.NodeID
		want  bool
	}{
		{"lost as well", question{Leader: "n1"}, "n2", follower(voters, "n1", 5, 9), []base.NodeID{"n1"}, true},
		{"hears it", question{Leader: "n1"}, "n2", follower(voters, "n1", 5, 9), nil, false},
		{"knows a newer one", question{Leader: "n1"}, "n2", follower(voters, "n4", 6, 9), []base.NodeID{"n1"}, false},
		{"knows another that is lost too", question{Leader: "n1"}, "n2", follower(voters, "n4", 6, 9), []base.NodeID{"n1", "n4"}, true},
		{"takes the asker for the leader, which asks", question{}, "n2", follower(voters, "n2", 5, 9), nil, true},
		{"leads itself", question{}, "n2", follower(voters, "n3", 5, 9), nil, false},
		{"leads itself, and the other is lost", question{Leader: "n1"}, "n2", follower(voters, "n3", 5, 9), []base.NodeID{"n1"}, false},
		{"knows none", question{}, "n2", follower(voters, "", 5, 9), nil, true},
		{"knows none, but hears the one in question", question{Leader: "n1"}, "n2", follower(voters, "", 5, 9), nil, false},
	} {
		o := sees("n3", c.lost...).answerTo(c.q, c.asker, c.mine)
		require.Equal(t, c.want, o.Lost, c.what)
		require.True(t, o.Hosted)
	}
	require.False(t, sees("n3").answerTo(question{}, "n2", replicaView{}).Hosted, "without a configuration it has no say")
}

// TestAWorldOfDeciders plays several deciders against each other, with messages that are late or lost and a leader that
// some of them hear: nobody stands while a majority hears the leader; if a majority has lost it somebody does, soon.
func TestAWorldOfDeciders(t *testing.T) {
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		n := 3 + 2*rng.Intn(2)
		voters := nodes(n)
		lost := map[base.NodeID]bool{} // who has lost n1
		for _, v := range voters[1:] {
			lost[v] = rng.Intn(3) > 0
		}
		count := 0
		cores := map[base.NodeID]*failover{}
		views := map[base.NodeID]replicaView{}
		for _, v := range voters[1:] {
			cores[v] = newFailover()
			views[v] = follower(voters, "n1", 5, uint64(5+rng.Intn(3)))
			if lost[v] {
				count++
			}
		}
		sight := func(v base.NodeID) world {
			if lost[v] {
				return sees(v, "n1")
			}
			return sees(v)
		}
		stood := time.Duration(-1)
		for at := time.Duration(0); at < 3*time.Second && stood < 0; at += 10 * time.Millisecond {
			now := at0.Add(at)
			for _, v := range voters[1:] {
				d := cores[v].step(now, sight(v), []replicaView{views[v]})
				for node, questions := range d.Ask {
					if node == "n1" || rng.Intn(4) == 0 {
						continue // the leader does not answer, and messages get lost
					}
					q := questions[0]
					cores[node].heard(now, v, q.Shard, q.Leader, opinion{Hosted: true, Lost: true, LastTerm: q.LastTerm, LastIndex: q.LastIndex})
					cores[v].heard(now, node, q.Shard, q.Leader, sight(node).answerTo(q, v, views[node]))
				}
				if len(d.Stand) > 0 {
					stood = at
				}
			}
		}
		require.Equal(t, count > n/2, stood >= 0, "seed %d: %d of %d lost it", seed, count, n)
	}
}
