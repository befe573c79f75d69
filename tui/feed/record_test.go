package feed

import (
	"bytes"
	"fmt"
	"io"
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

func replayed(t *testing.T, r io.Reader, speed float64) Feed {
	t.Helper()
	f, err := Replay(r, ReplayOptions{Speed: speed})
	require.NoError(t, err)
	return f
}

func TestReplayShowsWhatWasRecorded(t *testing.T) {
	o := storetest.Options{Seed: 1, Length: 40 * time.Second}
	s := store.New(store.Options{})
	f := replayed(t, bytes.NewReader(recording(t, o)), -1)
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
		f := replayed(t, bytes.NewReader(recording(t, o)), 4)
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
		f := replayed(t, bytes.NewReader(recording(t, o)), 1)
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
	all := bytes.Count(good, []byte{'\n'})
	for name, tt := range map[string]struct {
		file   string
		played int
		wrong  string
	}{
		"whole":              {string(good), all, ""},
		"cut off":            {string(good[:len(good)-40]), all - 1, ""},
		"damaged inside":     {string(good) + "{\"time\n" + string(good), all, fmt.Sprintf("line %d: unexpected end", all+1)},
		"a line too long":    {string(good) + strings.Repeat("x", maxLine+1), all, "token too long"},
		"too many values":    {string(good) + `{"topics":{"topics":[` + strings.Repeat("null,", maxValues+1) + "null]}}\n" + string(good), all, "too many values"},
		"nothing of a time":  {string(good) + "{}\n" + string(good), all, "without its time"},
		"empty lines inside": {"\n\n" + string(good), all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := replayed(t, strings.NewReader(tt.file), -1)
			n := 0
			for range f.Messages() {
				n++
			}
			require.Equal(t, tt.played, n)
			if tt.wrong == "" {
				require.NoError(t, f.Err())
			} else {
				require.ErrorContains(t, f.Err(), tt.wrong)
			}
			require.NoError(t, f.Close())
		})
	}
}

func TestWhatIsNoRecording(t *testing.T) {
	for name, file := range map[string]string{
		"empty": "", "empty lines": "\n\n", "text": "hello\n", "another's JSON": `{"schema":"top/1"}`, "a document": "{\n\"schema\": 1\n}\n", "cut off at once": `{"time":"2026`,
		"binary": "\x7fELF\x00\x01", "deep": strings.Repeat("[", 100_000), "long": strings.Repeat("x", maxLine+1),
	} {
		_, err := Replay(strings.NewReader(file), ReplayOptions{Speed: -1})
		require.ErrorContains(t, err, "no recording of eg-top", name)
	}
}

// What was recorded over a night with the lid closed does not take a night to see.
func TestReplayCutsSilenceShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		r := NewRecorder(&b)
		at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		for _, m := range []time.Time{at, at.Add(9 * time.Hour), at.AddDate(5000, 0, 0), at} {
			require.NoError(t, r.Write(store.Message{Time: m, Node: "n1"}))
		}
		require.NoError(t, r.Flush())
		f := replayed(t, &b, 1)
		began, n := time.Now(), 0
		for range f.Messages() {
			n++
		}
		require.Equal(t, 4, n)
		require.Equal(t, 2*maxPause, time.Since(began))
		require.NoError(t, f.Close())
	})
}

func TestAReplayNobodyReadsCloses(t *testing.T) {
	f := replayed(t, bytes.NewReader(recording(t, storetest.Options{Seed: 1})), -1)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
}
