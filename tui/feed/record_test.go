package feed

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

func recording(t *testing.T, o storetest.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	r := NewRecorder(&b)
	for m := range storetest.Stream(o) {
		require.NoError(t, r.Write(m))
	}
	require.NoError(t, r.Flush())
	return b.Bytes()
}

func TestReplayShowsWhatWasRecorded(t *testing.T) {
	o := storetest.Options{Seed: 1, Length: 40 * time.Second}
	s := store.New(store.Options{})
	f := Replay(bytes.NewReader(recording(t, o)), ReplayOptions{Speed: -1})
	for m := range f.Messages() {
		s.Apply(m)
	}
	require.NoError(t, f.Err())
	want := storetest.View(o, 40*time.Second)
	v := s.View(f.Now())
	require.Equal(t, want.Nodes.Get(o.Victim()).State, v.Nodes.Get(o.Victim()).State)
	require.Equal(t, want.Events.Len(), v.Events.Len())
	require.Equal(t, want.Seals.Len(), v.Seals.Len())
	require.NoError(t, f.Close())
}

func TestReplayKeepsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := storetest.Options{Seed: 1, Length: 20 * time.Second, Quiet: true}
		f := Replay(bytes.NewReader(recording(t, o)), ReplayOptions{Speed: 4})
		began := time.Now()
		for m := range f.Messages() {
			require.WithinDuration(t, m.Time, f.Now(), 500*time.Millisecond)
		}
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.2)
		end := f.Now()
		time.Sleep(time.Second)
		require.Equal(t, end, f.Now(), "it stands still at the end")
		require.NoError(t, f.Close())
	})
}

// A recording waits while the screen stands still, however long, and goes on where it was.
func TestReplayWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := storetest.Options{Seed: 1, Length: 20 * time.Second, Quiet: true}
		messages := storetest.Messages(o)
		f := Replay(bytes.NewReader(recording(t, o)), ReplayOptions{})
		var got []store.Message
		take := func() (n int) {
			for {
				synctest.Wait()
				select {
				case m, ok := <-f.Messages():
					if !ok {
						return n
					}
					got = append(got, m)
					n++
				default:
					return n
				}
			}
		}
		time.Sleep(5*time.Second + 40*time.Millisecond)
		require.Positive(t, take())
		f.Show(Viewport{Still: true})
		at := f.Now()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, take(), 1, "no more than what was under way")
		require.Equal(t, at, f.Now())
		f.Show(Viewport{Still: true, Nodes: true})
		time.Sleep(time.Hour)
		require.Zero(t, take())
		require.Equal(t, at, f.Now())

		f.Show(Viewport{})
		time.Sleep(time.Second)
		require.Equal(t, at.Add(time.Second), f.Now())
		require.Positive(t, take())
		time.Sleep(20 * time.Second)
		take()
		require.Len(t, got, len(messages))

		f.Show(Viewport{Still: true})
		require.NoError(t, f.Close())
	})
}

func TestRecordingsThatAreCutOrDamaged(t *testing.T) {
	good := recording(t, storetest.Options{Seed: 1, Length: time.Second, Quiet: true})
	f := Replay(bytes.NewReader(good[:len(good)-40]), ReplayOptions{Speed: -1})
	n := 0
	for range f.Messages() {
		n++
	}
	require.NoError(t, f.Err(), "a recording that was cut off ends where it does")
	require.Positive(t, n)

	f = Replay(strings.NewReader("{\n"+string(good)), ReplayOptions{Speed: -1})
	for range f.Messages() {
	}
	require.ErrorContains(t, f.Err(), "line 1")
}

func TestAReplayNobodyReadsCloses(t *testing.T) {
	f := Replay(bytes.NewReader(recording(t, storetest.Options{Seed: 1})), ReplayOptions{Speed: -1})
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
}
