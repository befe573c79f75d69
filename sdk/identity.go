package sdk

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"sync"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/wire"
)

// identity is what batches are recognised by, together with their sequence numbers.
type identity struct {
	id    int64
	epoch int16
}

// maxEpoch is the last epoch of an id.
const maxEpoch = math.MaxInt16

// nobody asks for no recognition.
var nobody = identity{id: header.NoProducer, epoch: -1}

// identities hands out a producer's identities for one topic.
//
// A range goes on under a new identity when the fate of one of its batches is unknown. For a producer without a
// name that is its own id with the next epoch, not another id: the range refuses the old epoch from the first
// batch of the new one on, so that a copy of the lost batch that is still on its way can no longer come in behind
// records sent after it. For a named producer the epochs are handed out by the topic's coordinator, since another
// process may open the name too.
type identities struct {
	name string // empty: a random id

	mu   sync.Mutex
	last identity // handed out last
	open bool     // last is set
}

// first is the identity to begin with.
func (s *identities) first(ctx context.Context, t *topic, r *route) (identity, error) {
	s.mu.Lock()
	last, open := s.last, s.open
	s.mu.Unlock()
	if open {
		return last, nil
	}
	return s.after(ctx, t, r, nobody)
}

// after is an identity newer than old.
func (s *identities) after(ctx context.Context, t *topic, r *route, old identity) (identity, error) {
	if s.name == "" {
		return s.bump(old), nil
	}
	s.mu.Lock()
	if s.open && s.last != old { // another range has opened the name again already
		defer s.mu.Unlock()
		return s.last, nil
	}
	s.mu.Unlock()
	var resp wire.OpenProducerResponse
	err := t.c.ask(ctx, wire.KindOpenProducer, wire.OpenProducerRequest{RequestID: newRequestID(), Topic: r.ID, Name: s.name, TopicName: r.Name}, &resp)
	if err != nil {
		return identity{}, about("open producer "+s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.open = identity{id: resp.ProducerID, epoch: resp.Epoch}, true
	return s.last, nil
}

// bump is the next epoch of a random id, or another id when there is none.
func (s *identities) bump(old identity) identity {
	if old != nobody && old.epoch < maxEpoch {
		return identity{id: old.id, epoch: old.epoch + 1}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nobody || !s.open {
		s.last, s.open = identity{id: randomProducerID()}, true
	}
	return s.last
}

// randomProducerID is 63 random bits: two producers do not meet.
func randomProducerID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails; see its documentation
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// addSequence is seq + n; sequences wrap from 2³¹-1 to 0.
func addSequence(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & math.MaxInt32) }
