package meta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// Check proves the invariants of the whole state; tests run it after every command, Decode before it trusts a
// snapshot. It names the first one that does not hold.
func (s *State) Check() error {
	if len(s.names) != len(s.topics) {
		return fmt.Errorf("%d names for %d topics", len(s.names), len(s.topics))
	}
	segments := make(map[base.SegmentID]bool)
	for id, t := range s.topics {
		if t.ID != id || s.names[t.Name] != t {
			return fmt.Errorf("topic %q is filed under another id or name", t.Name)
		}
		if err := s.checkTopic(t, segments); err != nil {
			return fmt.Errorf("topic %q: %w", t.Name, err)
		}
	}
	for id, tomb := range s.tombs {
		switch {
		case tomb.Topic != id || s.topics[id] != nil:
			return fmt.Errorf("topic %s is deleted and alive", id)
		case len(tomb.Waiting) == 0 || !slices.IsSortedFunc(tomb.Waiting, compareReplicas):
			return fmt.Errorf("tombstone of %s waits for nobody, or out of order", id)
		}
	}
	if err := s.requests.check(s.nowMs); err != nil {
		return err
	}
	if err := s.checkRecoveries(); err != nil {
		return err
	}
	if s.root != nil {
		return s.root.check()
	}
	return nil
}

func (s *State) checkTopic(t *Topic, segments map[base.SegmentID]bool) error {
	if !s.id.Contains(nameHash(t.Name), s.shards) {
		return fmt.Errorf("does not belong to shard %s", s.id)
	}
	if t.ConfigVersion > t.Version || t.Version < 1 || t.Epoch < 1 || len(t.Ranges) == 0 {
		return fmt.Errorf("version %d, settings of version %d, epoch %d, %d ranges", t.Version, t.ConfigVersion, t.Epoch, len(t.Ranges))
	}
	if err := t.Config.Validate(); err != nil {
		return err
	}
	var active []keyspace.Span
	for i, r := range t.Ranges {
		if i > 0 && t.Ranges[i-1].ID >= r.ID || r.ID == 0 || r.ID >= t.NextRange {
			return fmt.Errorf("range %s is out of order, or above the next id %d", r.ID, t.NextRange)
		}
		if r.State == base.StateActive {
			active = append(active, r.Span)
		}
		if err := s.checkRange(t, r, segments); err != nil {
			return fmt.Errorf("range %s: %w", r.ID, err)
		}
	}
	if err := keyspace.CheckCover(active); err != nil {
		return err
	}
	if !slices.IsSortedFunc(t.Producers, func(a, b Producer) int { return strings.Compare(a.Name, b.Name) }) || len(t.Producers) > MaxProducers {
		return fmt.Errorf("%d producers, or out of order", len(t.Producers))
	}
	return t.Losses.check()
}

func (s *State) checkRange(t *Topic, r *Range, segments map[base.SegmentID]bool) error {
	if (r.State == base.StateActive) != (r.Active() != nil) {
		return fmt.Errorf("is %s, but its last segment says otherwise", r.State)
	}
	if r.TrimVersion > t.Version || r.TrimmedTo < 0 {
		return fmt.Errorf("trimmed to %d by version %d of %d", r.TrimmedTo, r.TrimVersion, t.Version)
	}
	if err := s.checkEmptied(t, r, segments); err != nil {
		return err
	}
	next, epoch, lastMs := r.TrimmedTo, base.Epoch(0), int64(0)
	for i, seg := range r.Segments {
		last := i == len(r.Segments)-1
		switch {
		case seg.Base != next:
			return fmt.Errorf("%s begins at %d, not at %d", seg.ID, seg.Base, next)
		case seg.Epoch <= epoch || seg.Epoch > t.Epoch:
			return fmt.Errorf("%s has epoch %d after %d, the topic's is %d", seg.ID, seg.Epoch, epoch, t.Epoch)
		case seg.LastAppendMs < lastMs:
			return fmt.Errorf("%s ends earlier in time than the one before", seg.ID)
		case segments[seg.ID]:
			return fmt.Errorf("%s is there twice", seg.ID)
		case seg.ID == 0 || uint64(seg.ID)%uint64(s.shards) != (uint64(s.id.Root)+1)%uint64(s.shards):
			return fmt.Errorf("%s is not in the shard's class of ids", seg.ID)
		case uint64(seg.ID) > s.opened*uint64(s.shards):
			return fmt.Errorf("%s has not been handed out", seg.ID)
		case checkReplicas(seg.Replicas, seg.Boots) != nil:
			return fmt.Errorf("%s: %w", seg.ID, checkReplicas(seg.Replicas, seg.Boots))
		case seg.Version > t.Version || seg.SealVersion > t.Version:
			return fmt.Errorf("%s is of a version above the topic's %d", seg.ID, t.Version)
		}
		segments[seg.ID] = true
		next, epoch, lastMs = seg.End, seg.Epoch, seg.LastAppendMs
		if seg.State == base.StateActive {
			if !last || seg.End != NoEnd || seg.SealVersion != 0 || seg.Forced != nil || seg.Lossy {
				return fmt.Errorf("%s is active with end %d, at place %d of %d", seg.ID, seg.End, i+1, len(r.Segments))
			}
			continue
		}
		switch {
		case seg.State != base.StateSealed || seg.End < seg.Base || seg.SealVersion <= seg.Version:
			return fmt.Errorf("%s is %s with [%d, %d), opened by version %d, sealed by %d", seg.ID, seg.State, seg.Base, seg.End, seg.Version, seg.SealVersion)
		case seg.Empty() && i < len(r.Segments)-2:
			return fmt.Errorf("%s holds no record and is not the last sealed one", seg.ID)
		}
	}
	return nil
}

// checkEmptied proves that what was left out of a chain is empty, sealed and nowhere else.
func (s *State) checkEmptied(t *Topic, r *Range, segments map[base.SegmentID]bool) error {
	if len(r.Emptied) > MaxEmptied {
		return fmt.Errorf("%d segments are remembered beside the chain", len(r.Emptied))
	}
	for _, seg := range r.Emptied {
		switch {
		case seg.State != base.StateSealed || !seg.Empty() || seg.SealVersion <= seg.Version || seg.SealVersion > t.Version || seg.Epoch > t.Epoch:
			return fmt.Errorf("%s is left out of the chain as %s with [%d, %d)", seg.ID, seg.State, seg.Base, seg.End)
		case seg.ID == 0 || segments[seg.ID] || uint64(seg.ID) > s.opened*uint64(s.shards):
			return fmt.Errorf("%s is there twice, or was not handed out", seg.ID)
		case checkReplicas(seg.Replicas, seg.Boots) != nil:
			return fmt.Errorf("%s: %w", seg.ID, checkReplicas(seg.Replicas, seg.Boots))
		}
		segments[seg.ID] = true
	}
	return nil
}

func (t *requestTable) check(nowMs int64) error {
	if len(t.queue) != len(t.byID) || len(t.queue) > maxRequests {
		return fmt.Errorf("%d requests in the queue, %d by id", len(t.queue), len(t.byID))
	}
	var last int64
	for _, r := range t.queue {
		if r.TimeMs < last || r.TimeMs > nowMs || t.byID[r.ID] != r {
			return fmt.Errorf("request %s is out of order", r.ID)
		}
		last = r.TimeMs
	}
	return nil
}

func (r *Root) check() error {
	disks := make(map[base.UUID]bool)
	for i, n := range r.Nodes {
		switch {
		case n == nil || n.Boot == 0 || n.State < NodeNormal || n.State > NodeOut:
			return fmt.Errorf("node %d of the root is not whole", i)
		case i > 0 && r.Nodes[i-1].ID >= n.ID:
			return fmt.Errorf("node %q is out of order", string(n.ID))
		case disks[n.Disk] || disks[n.Meta]:
			return fmt.Errorf("node %q shares a disk with another", string(n.ID))
		}
		disks[n.Disk], disks[n.Meta] = true, true
	}
	return nil
}
