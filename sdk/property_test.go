package sdk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// TestWhateverHappens lets a cluster do everything it may (lose requests and answers, refuse, forget producers, move
// leaders, stop brokers, split ranges) while producers send and a consumer reads, and checks the promises:
//
//   - what was acked is stored where the ack said, once;
//   - what failed as not applied is not stored; what failed as unknown is stored at most once;
//   - the records of one key are stored in the order sent, and read in that order;
//   - everything is answered, and no memory is kept.
func TestWhateverHappens(t *testing.T) {
	seeds := 25
	if os.Getenv("EASTGUARD_SOAK") != "" {
		seeds = 2000
	}
	for seed := range seeds {
		if !t.Run(strconv.Itoa(seed), func(t *testing.T) { storm(t, uint64(seed)) }) {
			return
		}
	}
}

// stormy is one run.
type stormy struct {
	t     *testing.T
	rng   *rand.Rand
	mu    sync.Mutex
	c     *fakeCluster
	topic *fakeTopic

	fates map[string]fate // by value
	acks  map[Position]string
	trace []string
}

type fate struct {
	key string
	err error
}

func storm(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		s := &stormy{
			t: t, rng: rand.New(rand.NewPCG(seed, 7)), c: newFakeCluster(t, "n1", "n2", "n3"),
			fates: make(map[string]fate), acks: make(map[Position]string),
		}
		defer s.c.close()
		defer func() {
			if t.Failed() {
				t.Log(strings.Join(s.trace, "\n"))
			}
		}()
		s.topic = s.c.addTopic("orders", 1<<s.rng.IntN(3))
		cl := s.c.client()
		defer func() { require.NoError(t, cl.Close()) }()
		s.c.script = s.verdict
		k, err := cl.NewConsumer(WithTopics("orders"), WithRangeMaxBytes(2000), WithMaxPollRecords(13))
		require.NoError(t, err)

		calm := make(chan struct{})
		var weather sync.WaitGroup
		weather.Go(func() { s.upset(calm) })
		var senders sync.WaitGroup
		var producers []*Producer
		for g := range 3 {
			p, err := cl.NewProducer("orders", s.options()...)
			require.NoError(t, err)
			producers = append(producers, p)
			senders.Go(func() { s.send(p, g) })
		}
		senders.Wait()
		close(calm)
		weather.Wait()
		s.mu.Lock()
		s.c.mu.Lock()
		s.c.script = nil
		s.c.mu.Unlock()
		s.mu.Unlock()
		for _, p := range producers {
			require.NoError(t, p.Close(t.Context()))
			require.Zero(t, p.Stats().BufferedBytes)
		}
		stored := s.stored()
		s.requirePromises(stored)
		s.requireRead(collect(t, k, len(stored)))
		require.NoError(t, k.Close())
		time.Sleep(time.Second) // for the last answers that are held
	})
}

func (s *stormy) chance(percent int) bool { return s.roll(100) < percent }

func (s *stormy) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *stormy) options() []ProducerOption {
	opts := []ProducerOption{
		WithLinger(time.Duration(s.roll(3)) * 2 * time.Millisecond), WithMaxBatchRecords(1 + s.roll(9)),
		WithMaxInFlight(1 + s.roll(5)), WithDeliveryTimeout(time.Duration(2+s.roll(30)) * time.Second),
	}
	switch n := s.roll(100); {
	case n < 20:
		opts = append(opts, WithProducerName("p"+strconv.Itoa(s.roll(1<<30))))
	case n < 35:
		opts = append(opts, WithIdempotence(false), WithMaxInFlight(1))
	}
	return opts
}

// send sends the records of a few keys, one goroutine's own.
func (s *stormy) send(p *Producer, g int) {
	for i := range 150 {
		key, value := fmt.Sprintf("g%d-k%d", g, i%4), fmt.Sprintf("g%d-%d", g, i)
		err := p.SendAsync(Record{Key: []byte(key), Value: []byte(value)}, func(a Ack, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if _, again := s.fates[value]; again {
				s.t.Errorf("%s was answered twice", value)
			}
			s.fates[value] = fate{key, err}
			if err == nil {
				s.acks[a.Position] = value
			}
		})
		assert.NoError(s.t, err)
		switch {
		case s.chance(20):
			time.Sleep(time.Duration(s.roll(100)) * time.Millisecond)
		case s.chance(1):
			time.Sleep(time.Minute)
		}
	}
}

// verdict spoils some produces.
func (s *stormy) verdict(n int, p *fakeProduce) verdict {
	v := s.spoil()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprintf("%v #%d %s %d/%d seq %d+%d at %s: %+v", time.Now().Format("04:05.000"), n, p.req.Range, p.head.ProducerID%1000, p.head.ProducerEpoch, p.head.BaseSequence, p.head.Records, p.broker.node, v))
	return v
}

func (s *stormy) spoil() verdict {
	switch n := s.roll(100); {
	case n < 4:
		return verdict{lose: true}
	case n < 7:
		return verdict{drop: true}
	case n < 10:
		return verdict{refuse: base.Errorf(base.CodeBusy, "produce", "at a limit")}
	case n < 12:
		return verdict{refuse: base.Errorf(base.CodeTimeout, "produce", "slow").WithOutcome(base.Unknown)}
	case n < 13:
		return verdict{mute: true}
	case n < 20:
		hold := make(chan struct{})
		time.AfterFunc(time.Duration(s.roll(300))*time.Millisecond, func() { close(hold) })
		return verdict{hold: hold}
	}
	return verdict{}
}

// upset does things to the cluster until it is told to calm down.
func (s *stormy) upset(calm <-chan struct{}) {
	for {
		select {
		case <-calm:
			return
		case <-time.After(time.Duration(200+s.roll(1500)) * time.Millisecond):
		}
		node := base.NodeID("n" + strconv.Itoa(1+s.roll(3)))
		switch s.roll(5) {
		case 0:
			s.note("stop %s", node)
			s.c.stop(node)
			time.Sleep(time.Duration(s.roll(2000)) * time.Millisecond)
			s.c.start(node)
		case 1:
			s.note("cut %s", node)
			s.c.net.cut(string(node) + ":2921")
		case 2:
			if id := s.active(); id != 0 {
				s.note("move %s to %s", id, node)
				s.c.move(s.topic, id, node)
			}
		case 3:
			if id := s.active(); id != 0 && len(s.topic.ranges) < 12 {
				s.note("split %s", id)
				s.c.split(s.topic, id)
			}
		case 4:
			if id := s.active(); id != 0 && s.chance(30) {
				s.forget(id)
			}
		}
	}
}

func (s *stormy) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// forget makes a range forget the producers that have long been quiet, as a broker does: a day there, and here the
// longest delivery timeout, for a batch that may still be sent again must be recognised.
func (s *stormy) forget(id base.RangeID) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	producers := s.topic.find(id).producers
	for pid, p := range producers {
		if time.Since(p.lastAt) > 35*time.Second {
			s.note("%s forgets %d", id, pid%1000)
			delete(producers, pid)
		}
	}
}

// active is some range that can be written.
func (s *stormy) active() base.RangeID {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	r := s.topic.ranges[s.roll(len(s.topic.ranges))]
	if r.route.State != base.StateActive {
		return 0
	}
	return r.route.ID
}

// stored is what the ranges hold, parents before their children.
func (s *stormy) stored() (all []Message) {
	for _, r := range s.topic.ranges {
		for _, rec := range s.c.records(s.topic, r.route.ID) {
			all = append(all, Message{Record: Record{Key: rec.Key, Value: rec.Value}, Range: r.route.ID, Offset: rec.Offset})
		}
	}
	return all
}

func (s *stormy) requirePromises(stored []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, 3*150, len(s.fates), "everything is answered")
	seen := make(map[string]bool)
	last := make(map[string]int)
	for _, m := range stored {
		value, key := string(m.Value), string(m.Key)
		require.False(s.t, seen[value], "%s is stored twice", value)
		seen[value] = true
		f := s.fates[value]
		if f.err != nil {
			require.Equal(s.t, OutcomeUnknown, OutcomeOf(f.err), "%s is stored: %v", value, f.err)
		} else {
			at := Position{"orders", m.Range, m.Offset}
			require.Equal(s.t, value, s.acks[at], "%s is stored at %s, acked at %v", value, at, s.ackOf(value))
		}
		n, err := strconv.Atoi(value[strings.IndexByte(value, '-')+1:])
		require.NoError(s.t, err)
		if prev, ok := last[key]; ok {
			require.Greater(s.t, n, prev, "key %s", key)
		}
		last[key] = n
	}
	for value, f := range s.fates {
		if f.err == nil {
			require.True(s.t, seen[value], "%s was acked and is not stored", value)
		}
	}
}

// requireRead checks that the consumer has read what is stored, each key in order.
func (s *stormy) requireRead(read []Message) {
	seen := make(map[string]bool)
	last := make(map[string]int)
	for _, m := range read {
		value, key := string(m.Value), string(m.Key)
		require.False(s.t, seen[value], "%s was read twice", value)
		seen[value] = true
		n, err := strconv.Atoi(value[strings.IndexByte(value, '-')+1:])
		require.NoError(s.t, err)
		if prev, ok := last[key]; ok {
			require.Greater(s.t, n, prev, "key %s was read out of order", key)
		}
		last[key] = n
	}
}

func (s *stormy) ackOf(value string) (at []Position) {
	for p, v := range s.acks {
		if v == value {
			at = append(at, p)
		}
	}
	return at
}
