package shard

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wal"
)

// logTail is one group's raft.LogStore and raft.StableStore: its live entries and its few stable values, in memory and
// in the shared log. Entries are contiguous, from first on; positions say where in the shared log things lie.
type logTail struct {
	log *sharedLog
	id  base.ShardID

	mu       sync.Mutex
	first    uint64 // of entries; meaningless when there are none
	entries  []tailEntry
	stable   map[string]stableValue
	voteTerm []keyValue // of a vote whose other half is about to come; none or one
	reserved uint64     // entries from here on are needed by an older snapshot; 0: none
	appended int64      // bytes since the janitor was asked last
	broken   error      // found at replay
}

type tailEntry struct {
	raft.Log
	at wal.LSN // the record that holds it begins at or above
}

type stableValue struct {
	value []byte
	at    wal.LSN
}

const noPosition wal.LSN = math.MaxUint64

func newLogTail(l *sharedLog, id base.ShardID) *logTail {
	return &logTail{log: l, id: id, stable: make(map[string]stableValue)}
}

// replay puts one record of the shared log into memory. Later records win: entries replace those at and above their
// first index, a checkpoint replaces everything.
func (t *logTail) replay(at wal.LSN, r record) {
	switch r.kind {
	case recordEntries:
		t.put(at, r.entries)
	case recordStable:
		t.setStable(at, r.stable)
	case recordDelete:
		t.drop(r.from, r.to)
	case recordCheckpoint:
		t.entries, t.broken = nil, nil
		clear(t.stable)
		t.setStable(at, r.stable)
		t.put(at, r.entries)
	}
}

// put appends entries, cutting off what they replace. A gap cannot come from this program: the record is refused, and
// with it the start, unless a later checkpoint makes it irrelevant.
func (t *logTail) put(at wal.LSN, logs []raft.Log) {
	for _, l := range logs {
		if len(t.entries) == 0 {
			t.first = l.Index
		}
		switch next := t.first + uint64(len(t.entries)); {
		case l.Index > next:
			t.broken = base.Errorf(base.CodeCorruptData, "read metadata log", "shard %s: entry %d follows %d", t.id, l.Index, next-1)
			return
		case l.Index < t.first:
			t.entries, t.first = nil, l.Index
		case l.Index < next:
			t.entries = t.entries[:l.Index-t.first]
		}
		t.entries = append(t.entries, tailEntry{Log: l, at: at})
	}
}

func (t *logTail) setStable(at wal.LSN, values []keyValue) {
	for _, kv := range values {
		t.stable[kv.key] = stableValue{value: kv.value, at: at}
	}
}

// drop removes entries from..to, which are a prefix or a suffix of what there is.
func (t *logTail) drop(from, to uint64) {
	n := uint64(len(t.entries))
	if n == 0 || to < t.first || from > t.first+n-1 {
		return
	}
	if from > t.first {
		clear(t.entries[from-t.first:])
		t.entries = t.entries[:from-t.first]
		return
	}
	gone := min(to-t.first+1, n)
	// Copied, so that the memory of what is gone is given back.
	t.entries = append([]tailEntry(nil), t.entries[gone:]...)
	t.first += gone
}

// oldest is the lowest position of the shared log that this group needs.
func (t *logTail) oldest() wal.LSN {
	t.mu.Lock()
	defer t.mu.Unlock()
	low := noPosition
	if len(t.entries) > 0 { // positions grow along the entries: a copy raises all that were lower
		low = t.entries[0].at
	}
	for _, v := range t.stable {
		low = min(low, v.at)
	}
	return low
}

// keyBegun marks a replica that was begun by order: an empty one that lacks it has lost its log.
const keyBegun = "EastGuardBegun"

func (t *logTail) holdsEntries() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries) > 0
}

// begin marks the tail of a replica that starts empty. Term and vote of an earlier one are kept.
func (t *logTail) begin(generation uint64) error {
	r := record{kind: recordStable, group: t.id, stable: []keyValue{{key: keyBegun, value: binary.BigEndian.AppendUint64(nil, generation)}}}
	return t.log.persist(func() ticket {
		t.mu.Lock()
		defer t.mu.Unlock()
		at, ticket := t.log.append(r.kind, r.encode())
		t.setStable(at, r.stable)
		return ticket
	})
}

// clear removes the entries for good and keeps term and vote.
func (t *logTail) clear() error {
	defer t.log.tidy()
	return t.log.persist(func() ticket {
		t.mu.Lock()
		defer t.mu.Unlock()
		r := t.whole()
		r.entries = nil
		at, ticket := t.log.append(r.kind, r.encode())
		t.entries, t.reserved = nil, 0
		t.setStable(at, r.stable)
		return ticket
	})
}

// checkpoint is all that the group holds, in the form of a record of that kind.
func (t *logTail) checkpoint() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.whole()
	return r.encode()
}

// whole is the record that stands for all that the group holds. The caller has the lock.
func (t *logTail) whole() record {
	r := record{kind: recordCheckpoint, group: t.id}
	for k, v := range t.stable {
		r.stable = append(r.stable, keyValue{key: k, value: v.value})
	}
	slices.SortFunc(r.stable, func(a, b keyValue) int { return strings.Compare(a.key, b.key) })
	for i := range t.entries {
		r.entries = append(r.entries, t.entries[i].Log)
	}
	return r
}

// copyForward writes all that the group holds as one record at the head of the log. What is written meanwhile comes
// behind it, so replay ends at the same state.
func (t *logTail) copyForward() error {
	t.mu.Lock()
	r := t.whole()
	at, ticket := t.log.append(r.kind, r.encode())
	t.mu.Unlock()
	if err := t.log.await(ticket); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.entries {
		t.entries[i].at = max(t.entries[i].at, at)
	}
	for k, v := range t.stable {
		v.at = max(v.at, at)
		t.stable[k] = v
	}
	return nil
}

// blank reports whether the group has written nothing at all.
func (t *logTail) blank() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries) == 0 && len(t.stable) == 0
}

// keepFrom protects the entries from the last one on that the older snapshot covers: they are the way from there to now.
// That one itself tells a follower which was sent the snapshot that what comes next follows on it.
func (t *logTail) keepFrom(snapshot uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved = max(snapshot, 1)
}

// FirstIndex is the first entry's, 0 when there is none.
func (t *logTail) FirstIndex() (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return 0, nil
	}
	return t.first, nil
}

// LastIndex is the last entry's, 0 when there is none.
func (t *logTail) LastIndex() (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return 0, nil
	}
	return t.first + uint64(len(t.entries)) - 1, nil
}

// has reports whether an entry is there.
func (t *logTail) has(index uint64) bool {
	return t.GetLog(index, &raft.Log{}) == nil
}

// last is the last entry's index and term.
func (t *logTail) last() (index, term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.entries); n > 0 {
		return t.entries[n-1].Index, t.entries[n-1].Term
	}
	return 0, 0
}

// GetLog copies an entry out.
func (t *logTail) GetLog(index uint64, l *raft.Log) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 || index < t.first || index-t.first >= uint64(len(t.entries)) {
		return raft.ErrLogNotFound
	}
	*l = t.entries[index-t.first].Log
	return nil
}

// StoreLog stores one entry.
func (t *logTail) StoreLog(l *raft.Log) error { return t.StoreLogs([]*raft.Log{l}) }

// StoreLogs makes entries durable. The lock is held while the record is queued, so that memory and log agree on the
// order, and not while the disk works.
func (t *logTail) StoreLogs(logs []*raft.Log) error {
	r := record{kind: recordEntries, group: t.id, entries: make([]raft.Log, len(logs))}
	for i, l := range logs {
		r.entries[i] = *l
	}
	payload := r.encode()
	if err := t.checkNext(logs[0].Index); err != nil {
		return err
	}
	return t.log.persist(func() ticket {
		t.mu.Lock()
		defer t.mu.Unlock()
		at, ticket := t.log.append(r.kind, payload)
		t.put(at, r.entries)
		t.appended += int64(len(payload))
		if t.appended > t.log.budget/keepFiles {
			t.appended = 0
			t.log.tidy()
		}
		return ticket
	})
}

// checkNext refuses a gap.
func (t *logTail) checkNext(index uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := uint64(len(t.entries)); n > 0 && index > t.first+n {
		return base.Errorf(base.CodeInternal, "store entries", "shard %s: entry %d would follow %d", t.id, index, t.first+n-1)
	}
	return nil
}

// DeleteRange drops a prefix after a snapshot, or a suffix that a new leader replaces. Of a prefix, what the older
// snapshot needs stays. To delete all is how raft clears the log for a snapshot that it was sent.
func (t *logTail) DeleteRange(from, to uint64) error {
	t.mu.Lock()
	last := t.first + uint64(len(t.entries)) - 1
	if to < last && t.reserved > 0 {
		to = min(to, t.reserved-1)
	}
	nothing := len(t.entries) == 0 || to < from
	t.mu.Unlock()
	if nothing {
		return nil
	}
	r := record{kind: recordDelete, group: t.id, from: from, to: to}
	payload := r.encode()
	defer t.log.tidy()
	return t.log.persist(func() ticket {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, ticket := t.log.append(r.kind, payload)
		t.drop(from, to)
		return ticket
	})
}

// IsMonotonic tells raft that entries have no gaps here: before it continues behind a snapshot it was sent, it has to
// clear what there is.
func (t *logTail) IsMonotonic() bool { return true }

// keyVoteTerm is the first half of a vote. Raft writes the other right behind, and answers after that.
const keyVoteTerm = "LastVoteTerm"

// Set makes a value durable before it returns: raft answers a vote right after. The halves of a vote become one record.
func (t *logTail) Set(key, value []byte) error {
	one := keyValue{key: string(key), value: bytes.Clone(value)}
	if one.key == keyVoteTerm {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.voteTerm = append(t.voteTerm[:0], one)
		return nil
	}
	t.mu.Lock()
	r := record{kind: recordStable, group: t.id, stable: append(t.voteTerm, one)}
	t.voteTerm = nil
	t.mu.Unlock()
	payload := r.encode()
	err := t.log.persist(func() ticket {
		t.mu.Lock()
		defer t.mu.Unlock()
		at, ticket := t.log.append(r.kind, payload)
		t.setStable(at, r.stable)
		return ticket
	})
	if err != nil {
		t.log.halt()
	}
	return nil
}

// Get returns a value, empty when it was never set.
func (t *logTail) Get(key []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.stable[string(key)].value), nil
}

// SetUint64 is Set for numbers.
func (t *logTail) SetUint64(key []byte, v uint64) error {
	return t.Set(key, binary.BigEndian.AppendUint64(nil, v))
}

// GetUint64 is Get for numbers, 0 when it was never set.
func (t *logTail) GetUint64(key []byte) (uint64, error) {
	b, err := t.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if len(b) != 8 {
		return 0, base.Errorf(base.CodeCorruptData, "read stable value", "shard %s: %q has %d bytes", t.id, key, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
