package shard

import (
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// fsm is raft's door to the meta.State of one shard. Here the library's types end.
type fsm struct {
	group  *group
	shards int

	mu    sync.RWMutex
	state *meta.State
}

func newFSM(g *group, shards int) *fsm {
	return &fsm{group: g, shards: shards, state: meta.New(g.id, shards)}
}

// Apply serves the interface; raft calls ApplyBatch.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies committed entries under one lock, then reports what happened in them.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	answers := make([]any, len(logs))
	var events []meta.Event
	var bytes int64
	f.mu.Lock()
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		bytes += int64(len(l.Data))
		cmd, err := meta.DecodeCommand(l.Data)
		if err != nil {
			answers[i] = applied{err: err}
			continue
		}
		result, happened := f.state.Apply(l.Index, cmd)
		answers[i] = applied{result: result}
		events = append(events, happened...)
	}
	f.mu.Unlock()
	if len(events) > 0 {
		f.group.host.o.OnApply(f.group.id, events)
	}
	f.group.host.snaps.grown(f.group, len(logs), bytes)
	return answers
}

// Snapshot takes a cheap copy; it is written while later entries are applied.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return &frozenState{state: f.state.Clone()}, nil
}

// Restore replaces the state by a snapshot's.
func (f *fsm) Restore(r io.ReadCloser) error {
	state, err := meta.Decode(r, f.group.id, f.shards)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.state = state
	f.mu.Unlock()
	f.group.host.o.OnApply(f.group.id, nil)
	return nil
}

func (f *fsm) view(fn func(*meta.State) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return fn(f.state)
}

func (f *fsm) topics() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Len()
}

// frozenState is a state that nobody changes any more.
type frozenState struct{ state *meta.State }

// Persist writes it out.
func (s *frozenState) Persist(sink raft.SnapshotSink) error {
	if err := s.state.Encode(sink); err != nil {
		return base.Wrap(base.CodeInternal, "write snapshot", err)
	}
	return nil
}

// Release has nothing to release.
func (s *frozenState) Release() {}
