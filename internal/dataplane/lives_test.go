package dataplane

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// Random lives: appends, retries, a disk that stands still, a coordinator that does not answer, seals from above. What
// was acked is in the log at its offset, once, and offsets have no holes.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(lives()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			small := base.TopicConfig{SegmentBytes: 1000, SegmentAge: time.Hour}
			leadingBubble(t, small, func(t *testing.T, r *rig) { randomLife(t, r, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func lives() int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return 5000
	}
	return 60
}

func randomLife(t *testing.T, r *rig, rng *rand.Rand) {
	type sent struct {
		producer int64
		seq      int32
		answers  <-chan outcome
	}
	var all []sent
	next := map[int64]int32{}
	for range 150 {
		switch rng.IntN(12) {
		case 0:
			r.log.hold()
		case 1, 2:
			r.log.release(-1)
		case 3:
			r.coord.mu.Lock()
			r.coord.silent = rng.IntN(2) == 0
			r.coord.mu.Unlock()
		case 4:
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		case 5:
			if len(all) > 0 { // a retry of one of the last
				s := all[len(all)-1-rng.IntN(min(len(all), 5))]
				s.answers = r.append(makeBatch(1, s.producer, s.seq, 100), time.Minute)
				all = append(all, s)
			}
		default:
			id := rng.Int64N(3) + 1
			all = append(all, sent{id, next[id], r.append(makeBatch(1, id, next[id], 100), time.Minute)})
			next[id]++
		}
	}
	r.log.release(-1)
	r.coord.mu.Lock()
	r.coord.silent = false
	r.coord.mu.Unlock()

	type identity struct {
		producer int64
		seq      int32
	}
	at := map[int64]identity{}
	of := map[identity]int64{}
	for _, s := range all {
		out := <-s.answers
		if out.err != nil {
			require.NotErrorIs(t, out.err, base.CodeInternal)
			continue
		}
		who := identity{s.producer, s.seq}
		if old, ok := of[who]; ok {
			require.Equal(t, old, out.Base, "a retry has the original's offset")
		}
		if old, ok := at[out.Base]; ok {
			require.Equal(t, old, who, "an offset is one batch")
		}
		at[out.Base], of[who] = who, out.Base
	}
	synctest.Wait()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	stored := map[int64]identity{}
	var end int64
	for id := base.SegmentID(1); id <= r.coord.next; id++ {
		s := r.log.segments[id]
		if s == nil {
			continue
		}
		require.Equal(t, end, s.info.Base, "segment %s begins where the one before it ends", id)
		end = s.end
		if s.info.SealedEnd >= 0 {
			end = s.info.SealedEnd
		}
		for _, b := range s.batches {
			if b.Header.BaseOffset < end {
				stored[b.Header.BaseOffset] = identity{b.Header.ProducerID, b.Header.BaseSequence}
			}
		}
	}
	for off, who := range at {
		require.Equal(t, who, stored[off], "acked at %d", off)
	}
	require.Len(t, stored, int(end), "no holes")
	require.Empty(t, r.fatal)
	require.Zero(t, r.plane.waiting.Load())
}
