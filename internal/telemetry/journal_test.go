package telemetry

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func filled(size, events int) *Journal {
	j := NewJournal(size)
	for i := range events {
		j.Append(Event{Type: "test.event", Subject: fmt.Sprint(i + 1)})
	}
	return j
}

func seqs(p Page) []uint64 {
	var list []uint64
	for _, e := range p.Events {
		list = append(list, e.Seq)
	}
	return list
}

func TestJournalKeepsTheLastEvents(t *testing.T) {
	for _, tc := range []struct {
		name         string
		events       int
		from         uint64
		limit        int
		want         []uint64
		missed, next uint64
	}{
		{"empty", 0, 0, 10, nil, 0, 1},
		{"all", 3, 1, 10, []uint64{1, 2, 3}, 0, 4},
		{"limit", 3, 1, 2, []uint64{1, 2}, 0, 3},
		{"from the middle", 3, 3, 10, []uint64{3}, 0, 4},
		{"not yet given", 3, 9, 10, nil, 0, 9},
		{"oldest kept after the ring went round", 9, 0, 10, []uint64{6, 7, 8, 9}, 0, 10},
		{"too late", 9, 2, 10, []uint64{6, 7, 8, 9}, 4, 10},
		{"limit nothing", 9, 7, 0, nil, 0, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := filled(4, tc.events).Since(tc.from, tc.limit)
			require.Equal(t, tc.want, seqs(p))
			require.Equal(t, tc.missed, p.Missed)
			require.Equal(t, tc.next, p.Next)
			for _, e := range p.Events {
				require.Equal(t, fmt.Sprint(e.Seq), e.Subject, "the event under a number never changes")
				require.NotZero(t, e.TimeMs)
			}
		})
	}
}

func TestJournalBackwards(t *testing.T) {
	for _, tc := range []struct{ events, take, want int }{{0, 5, 0}, {3, 5, 3}, {9, 5, 4}, {9, 2, 2}, {9, 1, 1}} {
		var got []uint64
		filled(4, tc.events).Last(func(e Event) bool {
			got = append(got, e.Seq)
			return len(got) < tc.take
		})
		require.Len(t, got, tc.want)
		for i, seq := range got {
			require.EqualValues(t, tc.events-i, seq)
		}
	}
}

func TestSubscriptionSeesEverythingInOrder(t *testing.T) {
	j := NewJournal(0)
	const writers, each = 4, 500
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				j.Append(Event{Type: "test.event"})
			}
		})
	}
	sub := j.Subscribe(1, 64)
	for want := uint64(1); want <= writers*each; {
		p, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Zero(t, p.Missed)
		for _, e := range p.Events {
			require.Equal(t, want, e.Seq)
			want++
		}
	}
	wg.Wait()
}

func TestSubscriptionWaitsAndCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJournal(4)
		sub := j.Subscribe(0, 0)
		go func() {
			time.Sleep(time.Minute)
			j.Append(Event{Type: "late"})
		}()
		start := time.Now()
		p, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, []uint64{1}, seqs(p))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = sub.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestSlowSubscriberIsToldWhatItMissed(t *testing.T) {
	j := filled(4, 1)
	sub := j.Subscribe(1, 10)
	for range 9 {
		j.Append(Event{Type: "test.event"})
	}
	p, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 6, p.Missed)
	require.Equal(t, []uint64{7, 8, 9, 10}, seqs(p))
	require.EqualValues(t, 11, j.End())
}
