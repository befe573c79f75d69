package meta

import (
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// State is one shard as of some index of its log. It is not safe for concurrent use, but the Topics it gives out
// are immutable and outlive any lock.
type State struct {
	id       base.ShardID
	shards   int    // how many the cluster began with: the stride of segment ids
	applied  uint64 // index of the last command
	nowMs    int64  // highest time of any command
	opened   uint64 // segments ever opened here
	topics   map[base.TopicID]*Topic
	names    map[string]*Topic
	tombs    map[base.TopicID]*Tombstone
	requests requestTable
	root     *Root // in shard 0 only

	recoveries []Recovery // oldest first
}

// New is the state of a shard before its first command.
func New(id base.ShardID, shards int) *State {
	s := &State{
		id: id, shards: shards,
		topics: make(map[base.TopicID]*Topic), names: make(map[string]*Topic), tombs: make(map[base.TopicID]*Tombstone),
		requests: newRequestTable(),
	}
	if id == base.RootShard {
		s.root = &Root{}
	}
	return s
}

// ShardOf names the shard that holds a topic, in a cluster where no shard has been split.
func ShardOf(name string, shards int) base.ShardID {
	depth := bits.TrailingZeros(uint(shards))
	return base.ShardID{Root: uint16(nameHash(name) >> 1 >> (63 - depth))}
}

func nameHash(name string) uint64 { return keyspace.HashKey([]byte(name)) }

// Apply executes one committed command. It is deterministic: it looks at nothing but the state and the command. An
// index at or below the last one changes nothing.
func (s *State) Apply(index uint64, cmd Command) (Result, []Event) {
	if index <= s.applied {
		return refuse(base.Errorf(base.CodeInternal, "apply", "index %d was applied before: the state is at %d", index, s.applied)), nil
	}
	s.applied = index
	s.nowMs = max(s.nowMs, cmd.TimeMs)
	s.requests.expire(s.nowMs)
	if stored, ok := s.requests.find(cmd.RequestID); ok {
		return s.repeated(stored), nil
	}
	a := applier{state: s}
	result := a.run(cmd)
	if !cmd.RequestID.IsZero() {
		s.requests.add(cmd.RequestID, s.nowMs, result)
	}
	return result, a.events
}

// Answered is the answer to a request that was applied before, as a retry would get it.
func (s *State) Answered(id base.RequestID) (Result, bool) {
	stored, ok := s.requests.find(id)
	if !ok {
		return Result{}, false
	}
	return s.repeated(stored), true
}

// repeated completes a stored result with what is looked up afresh.
func (s *State) repeated(r Result) Result {
	r.Repeat = true
	r.Topic = s.topics[r.TopicID]
	return r
}

// applier is one run of Apply: the state, and the events so far.
type applier struct {
	state  *State
	events []Event
}

func (a *applier) emit(e Event) {
	e.TimeMs = a.state.nowMs
	a.events = append(a.events, e)
}

func (a *applier) run(cmd Command) Result {
	switch {
	case cmd.CreateTopic != nil:
		return a.createTopic(cmd.CreateTopic)
	case cmd.AlterTopic != nil:
		return a.alterTopic(cmd.AlterTopic)
	case cmd.DeleteTopic != nil:
		return a.deleteTopic(cmd.DeleteTopic)
	case len(cmd.TopicsGone) > 0:
		return a.topicsGone(cmd.TopicsGone)
	case len(cmd.RollSegments) > 0:
		return a.rollSegments(cmd.RollSegments)
	case cmd.ForceSeal != nil:
		return a.forceSeal(cmd.ForceSeal)
	case len(cmd.TrimRanges) > 0:
		return a.trimRanges(cmd.TrimRanges)
	case cmd.OpenProducer != nil:
		return a.openProducer(cmd.OpenProducer)
	case cmd.InitCluster != nil:
		return a.initCluster(cmd.InitCluster)
	case cmd.RegisterNode != nil:
		return a.registerNode(cmd.RegisterNode)
	case cmd.SetNodeState != nil:
		return a.setNodeState(cmd.SetNodeState)
	case cmd.ReplaceNode != nil:
		return a.replaceNode(cmd.ReplaceNode)
	case cmd.RecordRecovery != nil:
		return a.recordRecovery(cmd.RecordRecovery)
	}
	return refuse(base.Errorf(base.CodeInvalidArgument, "apply", "the command is empty, or of a newer version than this broker knows"))
}

// put makes t the current version of its topic.
func (s *State) put(t *Topic) {
	s.topics[t.ID] = t
	s.names[t.Name] = t
}

// find resolves a topic by id or, when that is zero, by name; a name beside an id must be the topic's.
func (s *State) find(id base.TopicID, name string, expect base.Version) (*Topic, *base.Error) {
	t := s.names[name]
	if !id.IsZero() {
		t = s.topics[id]
	}
	switch {
	case t == nil || (name != "" && t.Name != name):
		if name == "" {
			name = id.String()
		}
		return nil, base.Errorf(base.CodeTopicNotFound, "find topic", "topic %q not found", name)
	case expect != 0 && expect != t.Version:
		return nil, base.Errorf(base.CodePreconditionFailed, "find topic", "topic %q is at version %d, not %d", t.Name, t.Version, expect)
	}
	return t, nil
}

// openSegment numbers a new segment. Each shard hands out one residue class modulo the number of shards.
func (s *State) openSegment() base.SegmentID {
	id := s.opened*uint64(s.shards) + uint64(s.id.Root) + 1
	s.opened++
	return base.SegmentID(id)
}

// ID is the shard's id.
func (s *State) ID() base.ShardID { return s.id }

// Shards is how many shards the cluster began with.
func (s *State) Shards() int { return s.shards }

// Applied is the index of the last command.
func (s *State) Applied() uint64 { return s.applied }

// NowMs is the highest time that any command carried.
func (s *State) NowMs() int64 { return s.nowMs }

// Root is the root shard's part, nil in others. Read only.
func (s *State) Root() *Root { return s.root }

// Len counts the topics.
func (s *State) Len() int { return len(s.topics) }

// Topic finds a topic by id, or returns nil.
func (s *State) Topic(id base.TopicID) *Topic { return s.topics[id] }

// TopicByName finds a topic by name, or returns nil.
func (s *State) TopicByName(name string) *Topic { return s.names[name] }

// All iterates over the topics, in no order.
func (s *State) All() iter.Seq[*Topic] { return maps.Values(s.topics) }

// List returns up to limit topics whose names sort after after, by name, and whether there are more. It looks at every
// name, but sorts only a few more than it returns; no limit means all.
func (s *State) List(after string, limit int, keep func(*Topic) bool) (page []*Topic, more bool) {
	byName := func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) }
	last := "" // of the page so far, once it is full: what sorts behind it is not on it
	for name, t := range s.names {
		if name <= after || more && name > last || keep != nil && !keep(t) {
			continue
		}
		if page = append(page, t); limit > 0 && len(page) >= 2*limit+listSlack {
			slices.SortFunc(page, byName)
			page, more, last = page[:limit], true, page[limit-1].Name
		}
	}
	slices.SortFunc(page, byName)
	if limit > 0 && len(page) > limit {
		return page[:limit], true
	}
	return page, more
}

// listSlack keeps small pages from being sorted again and again.
const listSlack = 64

// Tombstone finds a deleted topic that waits for confirmations, or returns nil.
func (s *State) Tombstone(id base.TopicID) *Tombstone { return s.tombs[id] }

// Tombstones iterates over them, in no order.
func (s *State) Tombstones() iter.Seq[*Tombstone] { return maps.Values(s.tombs) }

// Clone is an independent copy, cheap enough to take under a lock: topics are shared, being immutable.
func (s *State) Clone() *State {
	c := *s
	c.topics, c.names, c.tombs = maps.Clone(s.topics), maps.Clone(s.names), maps.Clone(s.tombs)
	c.requests = s.requests.clone()
	if s.root != nil {
		c.root = s.root.clone()
	}
	return &c
}

// DryRun says what Apply would answer, changing nothing.
func (s *State) DryRun(cmd Command) Result {
	cmd.RequestID = base.RequestID{}
	r, _ := s.Clone().Apply(s.applied+1, cmd)
	return r
}

// String is for logs and test scripts.
func (s *State) String() string {
	return fmt.Sprintf("shard %s at %d: %d topics, %d tombstones, %d requests", s.id, s.applied, len(s.topics), len(s.tombs), s.requests.len())
}
