package pledge

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// The model runs three Cores through everything that can happen to them. A state is what is durable, what the processes
// know, and every message that was ever sent: each of them may arrive now, later, several times or never, which covers
// loss, delay, duplication and partitions. A process may crash before and after each durable write; a crash keeps the
// durable part alone. One disk may be wiped, once.

const members = 3

// place is one machine of the model: its disk and its process. Its configuration is the model's.
type place struct {
	disk    uint8    // counts wipes
	held    int8     // durable: the pledge, by number; 0 = none
	cluster uint8    // durable: the minter of the cluster, place and disk; 0 = none
	got     [4]uint8 // the process's own: a bit for each founder whose pledge it has
}

// state is comparable, so that one that was seen before is recognized.
type state struct {
	places [members]place
	sent   uint64 // a bit for each message of the model
	mints  [3]uint8
	wiped  int8 // the place that lost its disk, -1 = none yet
}

// message is one that was sent, to a place.
type message struct {
	to     int
	ask    *Ask
	answer *Answer
}

func (m message) String() string {
	if m.ask != nil {
		return fmt.Sprintf("to %s: ask %v", addrOf(m.to), *m.ask)
	}
	return fmt.Sprintf("to %s: answer %v", addrOf(m.to), *m.answer)
}

func addrOf(i int) string { return string(rune('a' + i)) }

func placeOf(addr string) int { return int(addr[0] - 'a') }

func founderAt(i int, disk uint8) Founder {
	return Founder{Node: base.NodeID("n" + addrOf(i)), Disk: base.DiskID{byte(i + 1), disk + 1}, Addr: addrOf(i)}
}

// clusterOf is the id that a place mints: its own and its disk's number in one byte.
func clusterOf(i int, disk uint8) uint8 { return uint8(i+1)<<4 | disk + 1 }

func clusterID(c uint8) base.ClusterID {
	if c == 0 {
		return base.ClusterID{}
	}
	return base.ClusterID{c}
}

// model is one exploration.
type model struct {
	t        *testing.T
	plans    [members]Plan
	messages []message
	numbers  map[messageKey]int
	pledges  []Pledge       // number 0 is none
	came     map[state]step // how each state was reached
	healed   map[[members]place][members]place
}

type step struct {
	from      state
	what      string
	delivered int
}

func newModel(t *testing.T, plans [members]Plan) *model {
	return &model{
		t: t, plans: plans, numbers: make(map[messageKey]int), pledges: []Pledge{{}},
		came: make(map[state]step), healed: make(map[[members]place][members]place),
	}
}

// messageKey tells messages apart: the plan of an Ask is its minter's.
type messageKey struct {
	to, from int
	disk     uint8
	ask      bool
	cluster  base.ClusterID
	pledge   int8
	refusal  string
}

func (m *model) number(msg message) int {
	key := messageKey{to: msg.to}
	if msg.ask != nil {
		key.ask, key.from, key.disk = true, placeOf(msg.ask.Minter.Addr), msg.ask.Minter.Disk[1]
	} else {
		a := msg.answer
		key.from, key.disk, key.cluster, key.pledge, key.refusal = placeOf(a.From.Addr), a.From.Disk[1], a.Cluster, m.pledge(a.Pledge), a.Refusal
	}
	n, ok := m.numbers[key]
	if !ok {
		n = len(m.messages)
		require.Less(m.t, n, 64, "more messages than a state has bits")
		m.messages, m.numbers[key] = append(m.messages, msg), n
	}
	return n
}

func (m *model) pledge(p Pledge) int8 {
	i := slices.IndexFunc(m.pledges, p.Equal)
	if i < 0 {
		i = len(m.pledges)
		m.pledges = append(m.pledges, p)
	}
	return int8(i)
}

// core is the process of a place.
func (m *model) core(s *state, i int) *Core {
	p := &s.places[i]
	c, err := New(founderAt(i, p.disk), m.plans[i], m.pledges[p.held])
	require.NoError(m.t, err)
	c.cluster = clusterID(p.cluster)
	for j := range members {
		if p.got[j] > 0 {
			c.got[addrOf(j)] = founderAt(j, p.got[j]-1)
		}
	}
	return c
}

// end is a state that an event leads to.
type end struct {
	state     state
	what      string
	delivered int // a message's number plus one
}

// do lets a place carry out a step and returns the states after it: each point where it may have crashed, and the whole.
func (m *model) do(s state, what string, i int, c *Core, step Step, from int) []end {
	var ends []end
	cut := func(at string) {
		crashed := s
		crashed.places[i].got = [4]uint8{}
		ends = append(ends, end{state: crashed, what: what + ", crash " + at})
	}
	p := &s.places[i]
	p.got = [4]uint8{}
	for addr, by := range c.got {
		p.got[placeOf(addr)] = by.Disk[1]
	}
	if step.Write != nil {
		cut("before the pledge is durable")
		p.held = m.pledge(*step.Write)
	}
	switch {
	case !step.Join.IsZero():
		p.cluster = step.Join[0]
	case step.Mint:
		cut("before the mint")
		p.cluster = clusterOf(i, p.disk)
		k := slices.Index(s.mints[:], 0)
		s.mints[k] = p.cluster
	}
	cut("before anything is said")
	switch {
	case step.Answer != nil:
		s.sent |= 1 << m.number(message{to: from, answer: step.Answer})
	case step.Ask != nil:
		for _, addr := range step.To {
			s.sent |= 1 << m.number(message{to: placeOf(addr), ask: step.Ask})
		}
	}
	return append(ends, end{state: s, what: what})
}

// next returns every state that one event leads to.
func (m *model) next(s state, wipes bool) []end {
	var all []end
	for i := range members {
		c := m.core(&s, i)
		all = append(all, m.do(s, "tick "+addrOf(i), i, c, c.Tick(), 0)...)

		who, answer := s, m.core(&s, i).Who()
		for j := range members {
			if j != i {
				who.sent |= 1 << m.number(message{to: j, answer: &answer})
			}
		}
		all = append(all, end{state: who, what: "all ask who " + addrOf(i) + " is"})

		if wipes && s.wiped < 0 {
			wiped := s
			wiped.places[i], wiped.wiped = place{disk: 1}, int8(i)
			all = append(all, end{state: wiped, what: "wipe " + addrOf(i)})
		}
	}
	for n, msg := range slices.Clone(m.messages) {
		if s.sent&(1<<n) != 0 {
			for _, e := range m.deliver(s, msg) {
				e.delivered = n + 1
				all = append(all, e)
			}
		}
	}
	return all
}

func (m *model) deliver(s state, msg message) []end {
	c := m.core(&s, msg.to)
	if msg.ask != nil {
		return m.do(s, "deliver", msg.to, c, c.OnAsk(*msg.ask), placeOf(msg.ask.Minter.Addr))
	}
	return m.do(s, "deliver", msg.to, c, c.OnAnswer(*msg.answer), 0)
}

// heal runs all places, connected and without faults, until nothing changes any more. What it leads to depends on the
// places alone, so each constellation is run once.
func (m *model) heal(s state) state {
	after, known := m.healed[s.places]
	if !known {
		run := state{places: s.places}
		for before := (state{wiped: -1}); before != run; {
			before = run
			for i := range members {
				m.round(&run, i)
			}
			run.sent = 0
		}
		after = run.places
		m.healed[s.places] = after
	}
	for i := range members { // who minted meanwhile
		p := after[i]
		if own := clusterOf(i, p.disk); p.cluster == own && s.places[i].cluster != own {
			s.mints[slices.Index(s.mints[:], 0)] = own
		}
	}
	s.places = after
	return s
}

// round lets a place ask everybody what it wants to know.
func (m *model) round(s *state, i int) {
	whole := func(ends []end) { *s = ends[len(ends)-1].state }
	c := m.core(s, i)
	tick := c.Tick()
	whole(m.do(*s, "", i, c, tick, 0))
	for _, addr := range tick.To {
		j := placeOf(addr)
		asked := m.core(s, j)
		answer := asked.OnAsk(*tick.Ask)
		whole(m.do(*s, "", j, asked, answer, i))
		whole(m.deliver(*s, message{to: i, answer: answer.Answer}))
	}
	for j := range members {
		who := m.core(s, j).Who()
		whole(m.deliver(*s, message{to: i, answer: &who}))
	}
}

func (s *state) founded() bool {
	c := s.places[0].cluster
	return c != 0 && s.places[1].cluster == c && s.places[2].cluster == c
}

// wayOut does what the refusals tell the operator to do: a node whose pledge is in the way starts anew.
func (m *model) wayOut(s state) state {
	for i := range s.places {
		p := &s.places[i]
		minter := placeOf(m.plans[i].List[0])
		lowest := founderAt(minter, s.places[minter].disk)
		if p.cluster == 0 && p.held != 0 && m.pledges[p.held].Minter != lowest {
			refusal := m.core(&s, i).OnAsk(Ask{Minter: lowest, List: m.plans[i].List, Expect: m.plans[i].Expect}).Answer.Refusal
			if minter == i {
				refusal = m.core(&s, i).Waiting()
			}
			require.Contains(m.t, refusal, "with empty directories")
			*p = place{disk: p.disk + 1}
		}
	}
	return s
}

// explore visits every state once and calls look.
func (m *model) explore(wipes bool, look func(s state)) int {
	first := state{wiped: -1}
	m.came[first] = step{}
	for queue := []state{first}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		look(s)
		for _, e := range m.next(s, wipes) {
			if _, seen := m.came[e.state]; !seen {
				m.came[e.state] = step{s, e.what, e.delivered}
				queue = append(queue, e.state)
			}
		}
	}
	return len(m.came)
}

// trail is how a state came to be, for a failure.
func (m *model) trail(s state) string {
	var lines []string
	for st := m.came[s]; st.what != ""; st = m.came[st.from] {
		line := st.what
		if st.delivered > 0 {
			line += " " + m.messages[st.delivered-1].String()
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

func (m *model) mintedOnce(s, reached state) {
	if s.mints[1] != 0 {
		m.t.Fatalf("minted twice: %x\n%s", s.mints, m.trail(reached))
	}
}

func plan(list string, expect int) Plan { return Plan{List: strings.Split(list, ""), Expect: expect} }

// Equal configurations: one mint at most, and from wherever it got to, all join one cluster once the faults are over.
func TestModelOfOneConfiguration(t *testing.T) {
	for _, p := range []Plan{plan("abc", 2), plan("abc", 3)} {
		m := newModel(t, [members]Plan{p, p, p})
		states := m.explore(false, func(s state) {
			healed := m.heal(s)
			m.mintedOnce(healed, s)
			if !healed.founded() {
				t.Fatalf("dead end:\n%s", m.trail(s))
			}
		})
		t.Logf("%d founders: %d states", p.Expect, states)
	}
}

// One node loses its disk, at any moment. That never makes a second cluster. When the lost disk was the minter's there
// may be pledges to it, and then the way out is the one that the refusals name.
func TestModelOfALostDisk(t *testing.T) {
	plans := []Plan{plan("abc", 2)}
	if os.Getenv("EASTGUARD_SOAK") != "" {
		plans = append(plans, plan("abc", 3)) // six times as many states
	}
	for _, p := range plans {
		m := newModel(t, [members]Plan{p, p, p})
		stuck := 0
		states := m.explore(true, func(s state) {
			healed := m.heal(s)
			m.mintedOnce(healed, s)
			if healed.founded() {
				return
			}
			require.Zero(t, s.wiped, "only the minter's loss needs a person")
			stuck++
			if healed = m.heal(m.wayOut(healed)); !healed.founded() {
				t.Fatalf("no way out:\n%s", m.trail(s))
			}
		})
		t.Logf("%d founders: %d states, %d of which need a person", p.Expect, states, stuck)
	}
}

// Configurations that contradict each other: still one mint at most, and once they are mended there is a way on.
func TestModelOfDifferentConfigurations(t *testing.T) {
	choices := []Plan{plan("abc", 2), plan("abc", 3), plan("ab", 2), plan("ac", 2), plan("bc", 2)}
	mended := plan("abc", 3)
	states := 0
	for _, a := range choices {
		for _, b := range choices {
			for _, c := range choices {
				plans := [members]Plan{a, b, c}
				if !slices.Contains(a.List, "a") || !slices.Contains(b.List, "b") || !slices.Contains(c.List, "c") {
					continue
				}
				m, after := newModel(t, plans), newModel(t, [members]Plan{mended, mended, mended})
				states += m.explore(false, func(s state) {
					m.mintedOnce(s, s)
					after.pledges = m.pledges
					restarted := s
					for i := range restarted.places {
						restarted.places[i].got = [4]uint8{}
					}
					healed := after.heal(restarted)
					m.mintedOnce(healed, s)
					if healed.founded() {
						return
					}
					healed = after.heal(after.wayOut(healed))
					m.mintedOnce(healed, s)
					if !healed.founded() {
						t.Fatalf("no way out:\n%s", m.trail(s))
					}
					m.pledges = after.pledges
				})
			}
		}
	}
	t.Logf("%d states", states)
}
