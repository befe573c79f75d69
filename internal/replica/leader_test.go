package replica

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

// TestConversations plays the scripts in testdata/leader: each line of a stanza is one event, the output is what the
// leader asked for and its state afterwards.
func TestConversations(t *testing.T) {
	datadriven.Walk(t, "testdata/leader", func(t *testing.T, path string) {
		s := &script{now: time.Unix(1_000, 0)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	l     *Leader[string]
	now   time.Time
	names int
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new": // new base=0 [followers=(n2,n3)] [credit=100]
		cfg := Config{Self: "n1", Credit: 1000, Followers: nodes(d, "followers")}
		d.MaybeScanArgs(t, "base", &cfg.Base)
		d.MaybeScanArgs(t, "credit", &cfg.Credit)
		s.l = NewLeader[string](cfg)
	case "append": // append [records=1] [bytes=10]
		records, bytes := 1, 10
		d.MaybeScanArgs(t, "records", &records)
		d.MaybeScanArgs(t, "bytes", &bytes)
		if !s.l.Room(bytes) {
			return "no room: " + s.status()
		}
		s.names++
		s.l.Append(records, bytes, fmt.Sprintf("b%d", s.names))
	case "ack": // ack n1 5
		node, end := base.NodeID(d.CmdArgs[0].Key), int64(0)
		_, err := fmt.Sscan(d.CmdArgs[1].Key, &end)
		require.NoError(t, err)
		if node == "n1" {
			s.l.LocalDurable(end, s.now)
		} else {
			s.l.FollowerAck(node, end, s.now)
		}
	case "down", "up", "lost", "rewind": // down n2; rewind n2 3
		s.link(t, d)
	case "lost?": // what the shell asks before an append
		return fmt.Sprintf("%v ", s.l.FreezeIfLost(s.now)) + s.ready() + s.status()
	case "drain":
		s.l.Drain(base.CauseDataPressure, s.now)
	case "freeze": // freeze [blame=n2]
		s.l.Freeze(base.CauseReplicaFailure, nodes(d, "blame"), s.now)
	case "sealed": // sealed 5
		var end int64
		_, err := fmt.Sscan(d.CmdArgs[0].Key, &end)
		require.NoError(t, err)
		if err := s.l.Sealed(end); err != nil {
			return "error: " + err.Error() + "\n" + s.status()
		}
	case "tick": // tick 100ms [times=3]
		step, err := time.ParseDuration(d.CmdArgs[0].Key)
		require.NoError(t, err)
		times := 1
		d.MaybeScanArgs(t, "times", &times)
		for range times {
			s.now = s.now.Add(step)
			s.l.Tick(s.now)
		}
	case "find": // find 3
		var at int64
		_, err := fmt.Sscan(d.CmdArgs[0].Key, &at)
		require.NoError(t, err)
		item, ok := s.l.Find(at)
		return fmt.Sprintf("%q %v\n", item, ok)
	case "status":
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return s.ready() + s.status()
}

func (s *script) link(t *testing.T, d *datadriven.TestData) {
	node := base.NodeID(d.CmdArgs[0].Key)
	switch d.Cmd {
	case "down":
		s.l.FollowerDown(node, s.now)
	case "up":
		s.l.FollowerUp(node, s.now)
	case "lost":
		s.l.FollowerLost(node, s.now)
	case "rewind":
		end, err := strconv.ParseInt(d.CmdArgs[1].Key, 10, 64)
		require.NoError(t, err)
		s.l.FollowerRewind(node, end, s.now)
	}
}

// nodes reads an argument that lists nodes.
func nodes(d *datadriven.TestData, key string) (list []base.NodeID) {
	for _, arg := range d.CmdArgs {
		if arg.Key == key {
			for _, n := range arg.Vals {
				list = append(list, base.NodeID(n))
			}
		}
	}
	return list
}

func (s *script) ready() string {
	r := s.l.Ready()
	var b strings.Builder
	if r.Advanced {
		fmt.Fprintf(&b, "commit %d done %v\n", r.Commit, r.Done)
	}
	for _, send := range r.Sends {
		fmt.Fprintf(&b, "send %s %v commit %d\n", send.Node, send.Items, send.Commit)
	}
	if r.AskRoll {
		fmt.Fprintf(&b, "ask roll end %d %s late %v", r.Roll.End, r.Roll.Cause, r.Roll.Late)
		if len(r.Roll.Lost) > 0 {
			fmt.Fprintf(&b, " lost %v", r.Roll.Lost)
		}
		b.WriteByte('\n')
	}
	if len(r.Late) > 0 {
		fmt.Fprintf(&b, "late %v\n", r.Late)
	}
	return b.String()
}

func (s *script) status() string {
	return fmt.Sprintf("%s next %d commit %d end %d tail %v\n", s.l.State(), s.l.Next(), s.l.Commit(), s.l.End(), s.l.Tail())
}

func TestAppendAllocatesNothingInSteadyFlow(t *testing.T) {
	l := NewLeader[int](Config{Self: "n1"})
	step := func() {
		for i := range 8 {
			l.Append(10, 1000, i)
		}
		l.LocalDurable(l.Next(), time.Time{})
		if len(l.Ready().Done) != 8 { // require would allocate
			t.Fatal("not all acked")
		}
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
}

func TestSendsAllocateNothingInSteadyFlow(t *testing.T) {
	l := NewLeader[int](Config{Self: "n1", Followers: []base.NodeID{"n2", "n3"}})
	step := func() {
		for i := range 8 {
			l.Append(10, 1000, i)
			if sends := l.Ready().Sends; len(sends) != 2 || len(sends[0].Items) != 1 { // require would allocate
				t.Fatal("not sent to both")
			}
		}
		l.LocalDurable(l.Next(), time.Time{})
		l.FollowerAck("n2", l.Next(), time.Time{})
		l.FollowerAck("n3", l.Next(), time.Time{})
		if len(l.Ready().Done) != 8 {
			t.Fatal("not all acked")
		}
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
}

// TestACloneGoesItsOwnWay plays random events on a leader and on its clones: what happens to a clone changes nothing in
// the leader, and equal keys stay equal under equal events.
func TestACloneGoesItsOwnWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLeader[int](Config{Self: "n1", Followers: []base.NodeID{"n2"}})
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			step := rapid.IntRange(0, 5).Draw(t, "step")
			play := func(l *Leader[int]) Ready[int] {
				switch step {
				case 0, 1:
					if l.Room(1) {
						l.Append(1, 1, i)
					}
				case 2:
					l.LocalDurable(l.Next(), time.Time{})
				case 3:
					l.FollowerAck("n2", l.Next(), time.Time{})
				case 4:
					l.FollowerRewind("n2", l.Commit(), time.Time{})
				case 5:
					if i > 20 {
						l.FollowerLost("n2", time.Time{})
					}
				}
				r := l.Ready()
				r.Done, r.Late = append([]int{}, r.Done...), nil
				r.Sends = append([]Send[int]{}, r.Sends...)
				for j := range r.Sends {
					r.Sends[j].Items = append([]int{}, r.Sends[j].Items...)
				}
				return r
			}
			before := l.AppendKey(nil)
			twin := l.Clone()
			require.Equal(t, before, twin.AppendKey(nil))
			ready := play(twin)
			require.Equal(t, before, l.AppendKey(nil), "what happens to a clone")
			require.Equal(t, ready, play(l))
			require.Equal(t, twin.AppendKey(nil), l.AppendKey(nil))
			require.Equal(t, twin.Tail(), l.Tail())
		}
	})
}

func TestResumedLeaderGoesOnWhereItWas(t *testing.T) {
	l := Resume[string](Config{Self: "n1", Base: 100}, 120)
	require.True(t, l.Idle())
	require.EqualValues(t, 120, l.Append(2, 10, "a"))
	l.LocalDurable(122, time.Time{})
	r := l.Ready()
	require.EqualValues(t, 122, r.Commit)
	require.Equal(t, []string{"a"}, r.Done)
}

func TestAppendToALeaderThatDrainsIsABug(t *testing.T) {
	l := NewLeader[string](Config{Self: "n1"})
	l.Drain(base.CauseAge, time.Time{})
	require.Panics(t, func() { l.Append(1, 1, "late") })
}
