package meta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// TestScripts plays the conversations in testdata. Commands (all take at=MS for the proposer's clock and req=N for a
// request id):
//
//	create NAME [ranges=N] [on=n1,n2] [set=(k=v,…)]     alter NAME [set=(k=v,…)] [unset=(k,…)] [version=N]
//	delete NAME [version=N]                             gone NAME node=n1
//	roll NAME range=N end=N cause=C [segment=N epoch=N] [bytes=N] [last=MS] [gap=MS] [on=n1] [boots=N,…] [late=n1] [lost=n1] [lossy] [unopened]
//	force NAME range=N end=N [segment=N epoch=N] [on=n1] [boots=N,…] [reason=R] [silent=n1]
//	trim NAME range=N through=N [cause=C]               producer NAME id=N name=P
//	init cluster=N       register n1 boot=N [disk=N] [meta=N] [instance=N] [wal=N] [address=A]       state n1 is=draining
//	replace n1 [disk=N]
//	show                                                restart      (through a snapshot)
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		p := &player{state: New(base.RootShard, 1)}
		datadriven.RunTest(t, path, p.play)
	})
}

type player struct {
	state *State
	index uint64
	now   int64
	seen  map[string]base.TopicID // names, also of deleted topics
}

func id(kind byte, n int) base.UUID { return base.UUID{kind, byte(n >> 8), byte(n)} }

func (p *player) play(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "show":
		return dump(p.state)
	case "restart":
		p.state = throughSnapshot(t, p.state)
		return "ok"
	}
	cmd := p.command(t, d)
	before := encode(t, p.state)
	p.index++
	encoded, err := EncodeCommand(&cmd)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeCommand(encoded)
	if err != nil {
		t.Fatal(err)
	}
	dry := p.state.DryRun(decoded)
	if string(before) != string(encode(t, p.state)) {
		t.Fatal("a dry run changed the state")
	}
	r, events := p.state.Apply(p.index, decoded)
	if !r.Repeat && dry.Code != r.Code {
		t.Fatalf("the dry run answered %v, the command %v", dry.Code, r.Code)
	}
	if err := p.state.Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return describe(r, events)
}

func (p *player) command(t *testing.T, d *datadriven.TestData) Command {
	cmd := Command{TimeMs: p.at(t, d)}
	if n := argInt(t, d, "req"); n > 0 {
		cmd.RequestID = id('r', int(n))
	}
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	topic := p.state.TopicByName(name)
	if p.seen == nil {
		p.seen = make(map[string]base.TopicID)
	}
	if topic != nil {
		p.seen[name] = topic.ID
	}
	switch d.Cmd {
	case "create":
		cmd.CreateTopic = p.create(t, d, name)
	case "alter":
		cmd.AlterTopic = &AlterTopic{Name: name, ExpectVersion: base.Version(argInt(t, d, "version")), Set: argSettings(d), Unset: argList(d, "unset")}
	case "delete":
		cmd.DeleteTopic = &DeleteTopic{Name: name, ExpectVersion: base.Version(argInt(t, d, "version"))}
	case "gone":
		cmd.TopicsGone = []TopicGone{{Topic: p.seen[name], Replica: replica(argList(d, "node")[0])}}
	case "roll":
		cmd.RollSegments = []RollSegment{p.roll(t, d, topic)}
	case "force":
		cmd.ForceSeal = p.force(t, d, topic)
	case "trim":
		trim := TrimRange{Range: base.RangeID(argInt(t, d, "range")), Through: base.SegmentID(argInt(t, d, "through")), Cause: argCause(d)}
		if topic != nil {
			trim.Topic = topic.ID
		}
		cmd.TrimRanges = []TrimRange{trim}
	case "producer":
		cmd.OpenProducer = &OpenProducer{Topic: p.seen[name], Name: argList(d, "name")[0], ID: argInt(t, d, "id")}
	case "init":
		cmd.InitCluster = &InitCluster{Cluster: id('c', int(argInt(t, d, "cluster")))}
	case "register":
		cmd.RegisterNode = p.register(t, d, name)
	case "state":
		states := map[string]NodeState{"normal": NodeNormal, "draining": NodeDraining, "out": NodeOut}
		cmd.SetNodeState = &SetNodeState{Node: base.NodeID(name), State: states[argList(d, "is")[0]]}
	case "replace":
		cmd.ReplaceNode = &ReplaceNode{Node: base.NodeID(name)}
		if d.HasArg("disk") {
			cmd.ReplaceNode.Disk = id('d', int(argInt(t, d, "disk")))
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return cmd
}

// at is the clock of the command: it moves by a second unless told.
func (p *player) at(t *testing.T, d *datadriven.TestData) int64 {
	p.now += 1000
	if d.HasArg("at") {
		p.now = argInt(t, d, "at")
	}
	return p.now
}

func (p *player) create(t *testing.T, d *datadriven.TestData, name string) *CreateTopic {
	ranges := max(1, int(argInt(t, d, "ranges")))
	on := argList(d, "on")
	if on == nil {
		on = []string{"n1"}
	}
	c := &CreateTopic{ID: id('t', int(p.index)+1), Name: name, Config: base.TopicConfig{ReplicationFactor: len(on)}, Spans: keyspace.Tile(ranges)}
	for range ranges {
		c.Replicas = append(c.Replicas, replicas(on))
		if boots := argBoots(t, d); boots != nil {
			c.Boots = append(c.Boots, boots)
		}
	}
	for k, v := range argSettings(d) {
		if err := c.Config.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (p *player) roll(t *testing.T, d *datadriven.TestData, topic *Topic) RollSegment {
	r := RollSegment{
		Range: base.RangeID(argInt(t, d, "range")), End: argInt(t, d, "end"), Cause: argCause(d), Bytes: argInt(t, d, "bytes"),
		LastAppendMs: argInt(t, d, "last"), GapMs: argInt(t, d, "gap"), Opened: !d.HasArg("unopened"), Replicas: replicas([]string{"n1"}),
		Boots: argBoots(t, d), Late: argNodes(d, "late"), Lost: argNodes(d, "lost"), Lossy: d.HasArg("lossy"),
	}
	if on := argList(d, "on"); on != nil {
		r.Replicas = replicas(on)
	}
	if topic != nil {
		r.Topic = topic.ID
		if rng := topic.Range(r.Range); rng != nil {
			r.Segment, r.Epoch = rng.Active().ID, rng.Active().Epoch
		}
	}
	if d.HasArg("segment") {
		r.Segment, r.Epoch = base.SegmentID(argInt(t, d, "segment")), base.Epoch(argInt(t, d, "epoch"))
	}
	return r
}

func (p *player) force(t *testing.T, d *datadriven.TestData, topic *Topic) *ForceSealSegment {
	r := p.roll(t, d, topic)
	return &ForceSealSegment{
		Topic: r.Topic, Range: r.Range, Segment: r.Segment, Epoch: r.Epoch, End: r.End, Replicas: r.Replicas, Boots: r.Boots, GapMs: r.GapMs,
		Reason: strings.Join(argList(d, "reason"), ","), Silent: replicas(argList(d, "silent")), Opened: r.Opened,
	}
}

func (p *player) register(t *testing.T, d *datadriven.TestData, name string) *RegisterNode {
	n := int(name[len(name)-1] - '0')
	or := func(key string, value int) int {
		if d.HasArg(key) {
			return int(argInt(t, d, key))
		}
		return value
	}
	boot := or("boot", 1)
	r := &RegisterNode{
		Node: base.NodeID(name), Disk: id('d', or("disk", n)), Meta: id('m', or("meta", n)), Boot: uint64(boot),
		Instance: id('i', or("instance", 100*n+boot)), WALEnd: uint64(argInt(t, d, "wal")), Address: name + ":2921",
	}
	if a := argList(d, "address"); a != nil {
		r.Address = a[0]
	}
	return r
}

func replica(node string) base.Replica {
	return base.Replica{Node: base.NodeID(node), Disk: id('d', int(node[len(node)-1]-'0'))}
}

func replicas(nodes []string) []base.Replica {
	list := make([]base.Replica, len(nodes))
	for i, n := range nodes {
		list[i] = replica(n)
	}
	return list
}

func argBoots(t *testing.T, d *datadriven.TestData) []uint64 {
	var boots []uint64
	for _, v := range argList(d, "boots") {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			d.Fatalf(t, "boots: %v", err)
		}
		boots = append(boots, n)
	}
	return boots
}

func argNodes(d *datadriven.TestData, key string) []base.NodeID {
	var list []base.NodeID
	for _, v := range argList(d, key) {
		list = append(list, base.NodeID(v))
	}
	return list
}

func argInt(t *testing.T, d *datadriven.TestData, key string) int64 {
	v := argList(d, key)
	if v == nil {
		return 0
	}
	n, err := strconv.ParseInt(v[0], 10, 64)
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return n
}

func argList(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key != key {
			continue
		}
		if len(a.Vals) == 1 {
			return strings.Split(a.Vals[0], ",")
		}
		return a.Vals
	}
	return nil
}

func argSettings(d *datadriven.TestData) map[string]string {
	settings := make(map[string]string)
	for _, kv := range argList(d, "set") {
		k, v, _ := strings.Cut(kv, "=")
		settings[k] = v
	}
	return settings
}

func argCause(d *datadriven.TestData) base.Cause {
	names := argList(d, "cause")
	for c := base.CauseNone; c <= base.CauseDrain; c++ {
		if names != nil && c.String() == names[0] {
			return c
		}
	}
	return base.CauseNone
}

func describe(r Result, events []Event) string {
	var b strings.Builder
	if r.Code != base.CodeOK {
		fmt.Fprintf(&b, "%s: %s\n", r.Code.String(), r.Message)
		if r.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", r.Hint)
		}
	} else {
		b.WriteString("ok")
		if r.Version > 0 {
			fmt.Fprintf(&b, " version %d", r.Version)
		}
		if r.Segments > 0 {
			fmt.Fprintf(&b, " ranges %d segments %d bytes %d", r.Ranges, r.Segments, r.Bytes)
		}
		if r.Producer != (ProducerGrant{}) {
			fmt.Fprintf(&b, " producer %d epoch %d", r.Producer.ID, r.Producer.Epoch)
		}
		b.WriteString("\n")
	}
	if r.Repeat {
		b.WriteString("  repeated\n")
	}
	for _, roll := range r.Rolls {
		fmt.Fprintf(&b, "  roll: %s end %d", roll.Code.String(), roll.End)
		if roll.Active != nil {
			fmt.Fprintf(&b, ", active %s epoch %d base %d", roll.Active.ID, roll.Active.Epoch, roll.Active.Base)
		}
		if roll.Message != "" {
			fmt.Fprintf(&b, " (%s)", roll.Message)
		}
		b.WriteString("\n")
	}
	for _, trim := range r.Trims {
		fmt.Fprintf(&b, "  trim: %s segments %d bytes %d, trimmed to %d\n", trim.Code.String(), trim.Segments, trim.Bytes, trim.TrimmedTo)
	}
	for _, e := range events {
		fmt.Fprintf(&b, "  event %s", e.Type)
		for _, part := range []struct {
			show bool
			text string
		}{
			{e.Name != "", e.Name},
			{e.Range != 0, e.Range.String()},
			{e.Segment != 0, fmt.Sprintf("%s -> %s at %d", e.Segment, e.Next, e.Offset)},
			{e.Cause != 0, e.Cause.String()},
			{e.GapMs != 0, fmt.Sprintf("gap %d", e.GapMs)},
			{e.Node != "", string(e.Node)},
			{len(e.Replicas) > 1, fmt.Sprintf("on %s", nodeNames(e.Replicas))},
			{len(e.Late) > 0, fmt.Sprintf("late %v", e.Late)},
			{len(e.Lost) > 0, fmt.Sprintf("lost %v", e.Lost)},
			{e.Lossy, "with possible loss"},
			{e.Detail != "", "[" + e.Detail + "]"},
		} {
			if part.show {
				b.WriteString(" " + part.text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func nodeNames(set []base.Replica) string {
	list := make([]string, len(set))
	for i, h := range set {
		list[i] = string(h.Node)
	}
	return strings.Join(list, ",")
}

func dump(s *State) string {
	var b strings.Builder
	fmt.Fprintln(&b, s)
	topics, _ := s.List("", 0, nil)
	for _, t := range topics {
		fmt.Fprintf(&b, "%s version %d epoch %d", t.Name, t.Version, t.Epoch)
		if t.Config.Retention > 0 {
			fmt.Fprintf(&b, " retention %s", t.Config.Retention/time.Second*time.Second)
		}
		b.WriteString("\n")
		for _, r := range t.Ranges {
			fmt.Fprintf(&b, "  %s %s %s from %d\n", r.ID, r.Span, r.State, r.TrimmedTo)
			for _, seg := range r.Segments {
				fmt.Fprintf(&b, "    %s after %s epoch %d [%d, %d) %s %s on %s bytes %d last %d", seg.ID, seg.Prev, seg.Epoch,
					seg.Base, seg.End, seg.State, seg.Cause, nodeNames(seg.Replicas), seg.Bytes, seg.LastAppendMs)
				if len(seg.Boots) > 0 {
					fmt.Fprintf(&b, " starts %v", seg.Boots)
				}
				if seg.Forced != nil {
					fmt.Fprintf(&b, ", forced: %s (silent: %s)", seg.Forced.Reason, nodeNames(seg.Forced.Silent))
				}
				if seg.Lossy {
					b.WriteString(", with possible loss")
				}
				b.WriteString("\n")
			}
		}
		if t.Losses != nil {
			fmt.Fprintf(&b, "  %d losses, the last one of %s at %d\n", t.Losses.Count, t.Losses.Recent[len(t.Losses.Recent)-1].Segment, t.Losses.Recent[len(t.Losses.Recent)-1].End)
		}
		for _, p := range t.Producers {
			fmt.Fprintf(&b, "  producer %s id %d epoch %d\n", p.Name, p.ID, p.Epoch)
		}
	}
	tombs := slices.SortedFunc(s.Tombstones(), func(a, b *Tombstone) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range tombs {
		fmt.Fprintf(&b, "tombstone of %s waits for %d disks\n", t.Name, len(t.Waiting))
	}
	if s.root != nil {
		for _, n := range s.root.Nodes {
			fmt.Fprintf(&b, "node %s boot %d %s %s\n", n.ID, n.Boot, n.Address, n.State)
		}
	}
	return b.String()
}
