package replica

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// TestFollowerConversations plays the scripts in testdata/follower: each stanza is one event, the output is the verdict
// on it, what the shell is to do, and the follower's state afterwards.
func TestFollowerConversations(t *testing.T) {
	datadriven.Walk(t, "testdata/follower", func(t *testing.T, path string) {
		s := &followerScript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type followerScript struct{ f *Follower }

func (s *followerScript) run(t *testing.T, d *datadriven.TestData) string {
	var verdict Verdict
	var failure string
	switch d.Cmd {
	case "new": // new base=0
		var start int64
		d.MaybeScanArgs(t, "base", &start)
		s.f = NewFollower(start)
	case "open": // open n1.1
		verdict = s.f.Open(source(t, d, 0))
	case "opened":
		s.f.Opened()
	case "append": // append n1.1 0 2
		verdict = s.f.Append(source(t, d, 0), number(t, d, 1), number(t, d, 2))
	case "durable": // durable 2
		s.f.Durable(number(t, d, 0))
	case "commit": // commit n1.1 2
		s.f.Commit(source(t, d, 0), number(t, d, 1))
	case "probe": // probe n1.1 3
		s.f.Probe(source(t, d, 0), number(t, d, 1))
	case "dropped":
		s.f.Dropped()
	case "room":
		s.f.Room()
	case "fence":
		s.f.Fence()
	case "failed":
		s.f.Failed()
	case "seal": // seal 2
		if err := s.f.Seal(number(t, d, 0)); err != nil {
			failure = "error: " + err.Error() + "\n"
		}
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	require.NoError(t, s.f.Check())
	return failure + s.verdict(verdict) + s.ready() + s.status()
}

func (s *followerScript) verdict(v Verdict) string {
	switch v {
	case 0:
		return ""
	case Refuse:
		return fmt.Sprintf("refuse, %s\n", s.f.Refusal())
	case Take, Early, Duplicate, Gap:
	}
	return v.String() + "\n"
}

func (s *followerScript) ready() string {
	var b strings.Builder
	r := s.f.Ready()
	if r.Publish {
		fmt.Fprintf(&b, "publish %d\n", r.Commit)
	}
	if r.Lost != 0 {
		fmt.Fprintf(&b, "lost, %s\n", r.Lost)
	}
	if r.Ack {
		fmt.Fprintf(&b, "ack %d\n", r.Durable)
	}
	if r.Want {
		fmt.Fprintf(&b, "want from %d\n", r.End)
	}
	return b.String()
}

func (s *followerScript) status() string {
	short := ""
	if s.f.Short() {
		short = " short"
	}
	return fmt.Sprintf("%s end %d durable %d commit %d%s\n", s.f.State(), s.f.End(), s.f.DurableEnd(), s.f.CommitEnd(), short)
}

// source reads n1.2: the second process of node n1.
func source(t *testing.T, d *datadriven.TestData, arg int) Source {
	node, boot, _ := strings.Cut(d.CmdArgs[arg].Key, ".")
	n, err := strconv.ParseUint(boot, 10, 64)
	require.NoError(t, err)
	return Source{Node: base.NodeID(node), Boot: n}
}

func number(t *testing.T, d *datadriven.TestData, arg int) int64 {
	n, err := strconv.ParseInt(d.CmdArgs[arg].Key, 10, 64)
	require.NoError(t, err)
	return n
}

func TestFollowerAllocatesNothing(t *testing.T) {
	f, from := NewFollower(0), Source{Node: "n1", Boot: 1}
	f.Open(from)
	f.Opened()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		end := f.End() + 10
		f.Append(from, f.End(), end)
		f.Commit(from, f.DurableEnd())
		f.Durable(end)
		f.Ready()
	}))
}
