package planner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// TestScripts plays the conversations in testdata. A script sets a world up and asks for plans, which are carried out
// on a real meta.State, so that one plan leads to the next:
//
//	node n1 [rack=R] [leading=N] [holds=N] [boot=N] [restarts=N] [settled=MS] [is=dead|suspect|left|leaving|draining|out|slow|full|replaced]
//	create NAME [factor=N] [min=N] [ranges=N] [retention=D] [retention-bytes=S] [durability=D] [spread=L] [under] [seed=N]
//	freeze NAME [range=N] end=N [cause=C] [late=n1,…] [lost=n1,…] [frozen=MS] [bytes=N] [last=MS]   a leader's request,
//	       [segment=N]                                   for the active segment or that one
//	fence NAME [range=N] [cause=C] n1=END[,unbroken|damaged|not_mine|unlisted] …                    a recovery and its answers
//	due NAME                                                                                        retention
//	plan [at=MS] [unopened=SEGMENT]                      of what has been asked for since the last one
//	renew NAME [at=MS]                                   which of its active segments should roll
//	force NAME [range=N] [reason=R] n1=END[,…] …         a forced seal, by these answers
//	show
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // a property's counter-example
		}
		p := &player{state: meta.New(base.RootShard, 1)}
		datadriven.RunTest(t, path, p.play)
	})
}

type player struct {
	state *meta.State
	view  topology.View
	in    Input
	index uint64
}

func (p *player) play(t *testing.T, d *datadriven.TestData) string {
	arg := args(d)
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "node":
		return p.node(base.NodeID(name), arg)
	case "create":
		return p.create(t, name, arg)
	case "freeze":
		seg, ref := p.active(name, arg)
		id := seg.ID
		if arg.has("segment") {
			id = base.SegmentID(arg.int("segment"))
		}
		p.in.Rolls = append(p.in.Rolls, RollRequest{
			Ref: ref, Segment: id, Epoch: seg.Epoch, End: arg.int("end"), Cause: cause(arg.str("cause", "DATA_PRESSURE")),
			Bytes: arg.int("bytes"), LastAppendMs: arg.int("last"), Late: arg.nodes("late"), Lost: arg.nodes("lost"), FrozenMs: arg.int("frozen"),
		})
		return ""
	case "fence":
		p.in.Recoveries = append(p.in.Recoveries, p.fence(name, arg))
		return ""
	case "force":
		return p.force(t, name, arg)
	case "renew":
		return p.renew(name, arg)
	case "due":
		p.in.Due = append(p.in.Due, p.state.TopicByName(name).ID)
		return ""
	case "plan":
		return p.plan(t, arg)
	case "show":
		return p.show()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (p *player) node(id base.NodeID, arg arguments) string {
	n := node(id, arg.str("rack", ""), int(arg.int("leading")))
	n.Segments, n.Restarts, n.SettledMs = int(arg.int("holds")), int(arg.int("restarts")), arg.int("settled")
	if arg.has("boot") {
		n.Boot = uint64(arg.int("boot"))
	}
	switch arg.str("is", "") {
	case "leaving":
		n.Leaving = true
	case "dead":
		n.Liveness = topology.Dead
	case "suspect":
		n.Liveness = topology.Suspect
	case "left":
		n.Liveness = topology.Left
	case "draining":
		n.Standing = topology.Draining
	case "out":
		n.Standing = topology.Out
	case "slow":
		n.Slow = true
	case "full":
		n.Full = true
	case "replaced":
		n.Disk = base.DiskID{0xff}
	}
	var nodes []topology.Node
	added := false
	for _, o := range p.view.Nodes {
		if o.ID == id {
			o, added = n, true
		}
		nodes = append(nodes, o)
	}
	if !added {
		nodes = append(nodes, n)
	}
	p.view.Nodes = nodes
	return ""
}

func (p *player) create(t *testing.T, name string, arg arguments) string {
	retention, err := base.ParseDuration(arg.str("retention", "0"))
	if err != nil {
		t.Fatal(err)
	}
	size, err := base.ParseSize(arg.str("retention-bytes", "0"))
	if err != nil {
		t.Fatal(err)
	}
	config := base.TopicConfig{
		ReplicationFactor: int(arg.int("factor")), MinReplicas: int(arg.int("min")), Retention: retention, RetentionBytes: size, SpreadBy: arg.str("spread", ""),
	}
	if arg.str("durability", "") == "replicated" {
		config.Durability = base.DurabilityReplicated
	}
	cmd, explain, err := CreateTopic(TopicRequest{
		ID: base.TopicID{'t', byte(p.index)}, Name: name, Spans: keyspace.Tile(max(1, int(arg.int("ranges")))),
		Config: config, AllowUnderReplicated: arg.has("under"),
	}, p.view, seeded(uint64(arg.int("seed"))), 1000)
	out := strings.Join(explain, "\n") + "\n"
	if err != nil {
		var e *base.Error
		errors.As(err, &e)
		return out + fmt.Sprintf("%s: %s\n  hint: %s\n", e.Code.String(), e.Msg, e.HintText())
	}
	return out + p.apply(t, cmd)
}

func (p *player) apply(t *testing.T, cmd meta.Command) string {
	p.index++
	r, _ := p.state.Apply(p.index, cmd)
	if err := p.state.Check(); err != nil {
		t.Fatal(err)
	}
	if err := r.Err("apply"); err != nil {
		return err.Error() + "\n"
	}
	return ""
}

func (p *player) active(name string, arg arguments) (*meta.Segment, base.RangeRef) {
	topic := p.state.TopicByName(name)
	r := topic.Range(base.RangeID(max(1, arg.int("range"))))
	return r.Active(), base.RangeRef{Topic: topic.ID, Range: r.ID}
}

func (p *player) fence(name string, arg arguments) Recovery {
	seg, ref := p.active(name, arg)
	rec := Recovery{Ref: ref, Segment: seg.ID, Epoch: seg.Epoch, Cause: cause(arg.str("cause", "RECOVERY"))}
	for _, n := range p.view.Nodes {
		if !arg.has(string(n.ID)) {
			continue
		}
		words := strings.Split(arg.str(string(n.ID), ""), ",")
		end, _ := strconv.ParseInt(words[0], 10, 64)
		a := meta.FenceAnswer{Segment: seg.ID, Replica: replica(n.ID), Kind: meta.Extent, End: end, LastAppendMs: 1500}
		for _, w := range words[1:] {
			switch w {
			case "unbroken":
				a.Unbroken = true
			case "damaged":
				a.Kind = meta.Damaged
			case "not_mine":
				a.Kind = meta.NotMine
			case "unlisted":
				a.Unlisted = true
			}
		}
		rec.Answers = append(rec.Answers, a)
	}
	return rec
}

func (p *player) force(t *testing.T, name string, arg arguments) string {
	in := Input{NowMs: 2000, View: p.view, Rand: seeded(1), Topic: p.state.Topic}
	cmd, placement, err := ForceSeal(in, p.fence(name, arg), arg.str("reason", ""))
	if err != nil {
		return err.Error() + "\n"
	}
	out := strings.Join(placement.Explain(), "\n") + "\n"
	out += fmt.Sprintf("force %s at %d, silent %s, next on %s\n", cmd.Segment, cmd.End, nodes(cmd.Silent), nodes(cmd.Replicas))
	return out + p.apply(t, meta.Command{ForceSeal: &cmd, TimeMs: 2000})
}

func (p *player) renew(name string, arg arguments) string {
	var b strings.Builder
	for _, n := range Renewals(p.state.TopicByName(name), p.view, max(arg.int("at"), 2000)) {
		fmt.Fprintf(&b, "%s of %s %s from %s: %s\n", n.Segment, n.Ref.Range, n.Cause, due(n.DueMs), n.Why)
	}
	return b.String()
}

func (p *player) plan(t *testing.T, arg arguments) string {
	unopened := base.SegmentID(arg.int("unopened"))
	in := p.in
	p.in = Input{}
	in.NowMs, in.View, in.Rand, in.Topic = max(arg.int("at"), 2000), p.view, seeded(1), p.state.Topic
	in.Opened = func(id base.SegmentID) bool { return id != unopened }
	plan := Make(in)
	var b strings.Builder
	for _, n := range plan.Notes {
		fmt.Fprintln(&b, n)
	}
	for _, w := range plan.Waiting {
		fmt.Fprintf(&b, "%s waits: %s: %s\n", w.Segment, w.Err.Code.String(), w.Err.Msg)
	}
	for _, cmd := range plan.Commands(in.NowMs) {
		for _, r := range cmd.RollSegments {
			fmt.Fprintf(&b, "roll %s %s at %d, next on %s", r.Segment, r.Cause, r.End, nodes(r.Replicas))
			for i, boot := range r.Boots {
				if boot > 1 {
					fmt.Fprintf(&b, ", start %d of %s", boot, r.Replicas[i].Node)
				}
			}
			if r.Lossy {
				b.WriteString(", with possible loss")
			}
			b.WriteString("\n")
		}
		for _, trim := range cmd.TrimRanges {
			fmt.Fprintf(&b, "trim %s through %s %s\n", trim.Range, trim.Through, trim.Cause)
		}
		b.WriteString(p.apply(t, cmd))
	}
	return b.String()
}

func nodes(set []base.Replica) string {
	names := make([]string, len(set))
	for i, r := range set {
		names[i] = string(r.Node)
	}
	return strings.Join(names, ",")
}

func (p *player) show() string {
	var b strings.Builder
	topics, _ := p.state.List("", 0, nil)
	for _, topic := range topics {
		fmt.Fprintf(&b, "%s retention %s due %s\n", topic.Name, base.FormatDuration(topic.Config.Retention), due(TrimDue(topic)))
		for _, r := range topic.Ranges {
			for _, s := range r.Segments {
				fmt.Fprintf(&b, "  %s %s [%d, %d) %s on %s\n", r.ID, s.ID, s.Base, s.End, s.State, nodes(s.Replicas))
			}
		}
	}
	return b.String()
}

func due(ms int64) string {
	if ms == Never {
		return "never"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func cause(name string) base.Cause {
	for c := base.CauseNone; c <= base.CauseDrain; c++ {
		if c.String() == name {
			return c
		}
	}
	return base.CauseNone
}

type arguments map[string][]string

func args(d *datadriven.TestData) arguments {
	m := arguments{}
	for _, a := range d.CmdArgs {
		m[a.Key] = a.Vals
	}
	return m
}

func (a arguments) has(key string) bool { _, ok := a[key]; return ok }

func (a arguments) str(key, or string) string {
	if len(a[key]) == 0 {
		return or
	}
	return strings.Join(a[key], ",")
}

func (a arguments) nodes(key string) []base.NodeID {
	var list []base.NodeID
	for v := range strings.SplitSeq(a.str(key, ""), ",") {
		if v != "" {
			list = append(list, base.NodeID(v))
		}
	}
	return list
}

func (a arguments) int(key string) int64 {
	n, _ := strconv.ParseInt(a.str(key, "0"), 10, 64)
	return n
}
