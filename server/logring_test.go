package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func texts(resp wire.WatchLogsResponse) (list []string) {
	for _, l := range resp.Lines {
		list = append(list, l.Message)
	}
	return list
}

func TestLogRingReads(t *testing.T) {
	var ring logRing
	log := slog.New(&ringHandler{ring: &ring, next: slog.DiscardHandler})
	for i := range 10 {
		log.Info(fmt.Sprint("line ", i))
	}
	log.Debug("not kept")
	log.With("node", "n7").WithGroup("disk").Warn("fsync was slow", "took", 480*time.Millisecond, slog.Group("file", "path", "wal\x1b[31m"))
	read := func(req wire.WatchLogsRequest) (resp wire.WatchLogsResponse) {
		if req.MaxLines == 0 {
			req.MaxLines = 100
		}
		ring.read(&req, &resp)
		return resp
	}
	all := read(wire.WatchLogsRequest{})
	require.Len(t, all.Lines, 11)
	require.Equal(t, uint64(12), all.Next)
	require.Equal(t, []wire.LogAttr{{Key: "node", Value: "n7"}, {Key: "disk.took", Value: "480ms"}, {Key: "disk.file.path", Value: "wal\x1b[31m"}}, all.Lines[10].Attrs)
	require.Equal(t, "warn", all.Lines[10].Level)
	require.Empty(t, read(wire.WatchLogsRequest{From: 12}).Lines)
	require.Empty(t, read(wire.WatchLogsRequest{From: 99}).Lines, "numbers that are yet to come")
	require.Equal(t, []string{"line 9", "fsync was slow"}, texts(read(wire.WatchLogsRequest{Last: 2})))
	require.Equal(t, []string{"fsync was slow"}, texts(read(wire.WatchLogsRequest{Level: "warn"})))
	require.Equal(t, []string{"fsync was slow"}, texts(read(wire.WatchLogsRequest{Contains: "N7"})))
	page := read(wire.WatchLogsRequest{MaxLines: 4})
	require.True(t, page.More)
	require.Equal(t, uint64(5), page.Next)

	for i := range 2 * logLines {
		log.Info(fmt.Sprint("more ", i))
	}
	resp := read(wire.WatchLogsRequest{From: 12})
	require.NotZero(t, resp.Lost)
	require.Len(t, ring.lines[ring.start:], logLines)
	big := strings.Repeat("x", 3*maxLogText)
	for range 3000 {
		log.Info(big)
	}
	require.LessOrEqual(t, ring.bytes, logBytes)
	require.Less(t, len(ring.lines)-ring.start, 3000)
}

// The log itself stays as it was.
func TestTheLogGoesOn(t *testing.T) {
	var ring logRing
	var out bytes.Buffer
	log := slog.New(&ringHandler{ring: &ring, next: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})})
	log.With("a", 1).Info("kept here only")
	log.With("a", 1).WithGroup("g").Error("in both", "b", 2)
	require.Len(t, ring.lines, 2)
	require.NotContains(t, out.String(), "kept here only")
	require.Contains(t, out.String(), `level=ERROR msg="in both" a=1 g.b=2`)
}

func TestLogReadersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ring logRing
		var readers logReaders
		readers.begin("n1", 3, &ring, func(f func()) error { go f(); return nil })
		log := slog.New(&ringHandler{ring: &ring, next: slog.DiscardHandler})
		ask := func(ctx context.Context, req wire.WatchLogsRequest) chan wire.WatchLogsResponse {
			c := make(chan wire.WatchLogsResponse, 1)
			readers.follow(ctx, req, func(resp wire.WatchLogsResponse, err error) {
				if err != nil {
					resp.Node = base.NodeID(base.CodeOf(err).String())
				}
				c <- resp
			})
			return c
		}
		ctx := t.Context()
		began := time.Now()
		require.Empty(t, (<-ask(ctx, wire.WatchLogsRequest{WaitMs: 5000})).Lines)
		require.Equal(t, 5*time.Second, time.Since(began))

		waiting, picky := ask(ctx, wire.WatchLogsRequest{WaitMs: 20_000}), ask(ctx, wire.WatchLogsRequest{WaitMs: 20_000, Level: "error"})
		time.Sleep(time.Second)
		began = time.Now()
		log.Info("here")
		require.Equal(t, []string{"here"}, texts(<-waiting))
		require.LessOrEqual(t, time.Since(began), 2*logPace)
		log.Error("bad")
		resp := <-picky
		require.Equal(t, []string{"bad"}, texts(resp))
		require.Equal(t, uint64(3), resp.Next)

		gone, cancel := context.WithCancel(ctx)
		left := ask(gone, wire.WatchLogsRequest{From: 3, WaitMs: 20_000})
		cancel()
		require.NotEqual(t, base.NodeID("n1"), (<-left).Node)
		last := ask(ctx, wire.WatchLogsRequest{From: 3, WaitMs: 20_000})
		readers.close()
		require.Equal(t, base.NodeID("n1"), (<-last).Node)
		require.NotEqual(t, base.NodeID("n1"), (<-ask(ctx, wire.WatchLogsRequest{From: 3, WaitMs: 20_000})).Node)
	})
}

// Where the pool has no room whoever waits is answered, and may ask again; a broker that stops takes nobody back.
func TestLogReadersWithoutAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, room := &logRing{}, false
		var readers logReaders
		readers.begin("n1", 7, ring, func(f func()) error {
			if !room {
				return base.CodeBusy
			}
			go f()
			return nil
		})
		var answers []error
		ask := func() {
			req := wire.WatchLogsRequest{From: 1, WaitMs: 1000}
			readers.follow(t.Context(), req, func(_ wire.WatchLogsResponse, err error) { answers = append(answers, err) })
		}
		ask()
		time.Sleep(logPace)
		synctest.Wait()
		require.Equal(t, []error{nil}, answers, "at once: nobody can look for it")
		room = true
		ask()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []error{nil, nil}, answers)
		readers.close()
		room = false
		readers.start()
		ask()
		require.ErrorIs(t, answers[2], base.CodeShuttingDown)
	})
}

func TestLogReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readers logReaders
		readers.begin("n1", 7, &logRing{}, func(f func()) error { go f(); return nil })
		busy := 0
		for range maxLogReaders + 3 {
			readers.follow(t.Context(), wire.WatchLogsRequest{From: 1, WaitMs: 1000}, func(_ wire.WatchLogsResponse, err error) {
				if base.CodeOf(err) == base.CodeBusy {
					busy++
				}
			})
		}
		require.Equal(t, 3, busy)
		readers.close()
	})
}

// A broker's log and counters, asked over its client port.
func TestWatchABrokersLogAndCounters(t *testing.T) {
	n := start(t, vfs.NewMem())
	logs := must[wire.WatchLogsResponse](n, wire.KindWatchLogs, wire.WatchLogsRequest{Level: "info"})
	require.NotEmpty(t, logs.Lines)
	require.Equal(t, base.NodeID("n1"), logs.Node)
	_, _, err := call[wire.WatchLogsResponse](n, wire.KindWatchLogs, wire.WatchLogsRequest{Level: "loud"})
	require.ErrorIs(t, err, base.CodeInvalidArgument)

	n.create("orders", base.TopicConfig{ReplicationFactor: 1})
	plain := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{})
	require.Nil(t, plain.Counters, "nobody asked for them")
	var led []wire.RangeCounters
	require.Eventually(t, func() bool {
		resp := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{Counters: true})
		led = nil
		if resp.Counters != nil {
			led = resp.Counters.Ranges
		}
		return len(led) == 1
	}, patience, 100*time.Millisecond)
	require.Equal(t, "orders", led[0].Topic)
	require.NotZero(t, led[0].Segment)

	// At the pace of a second, whatever else happens.
	first := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{Counters: true})
	next, seen, counted := first.Next, first.StateVersion, time.Now().UnixMilli()
	for {
		resp := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{
			Boot: first.Boot, From: next, Seen: seen, WaitMs: 20_000, Counters: true, Counted: counted,
		})
		next, seen = resp.Next, resp.StateVersion
		if resp.Counters != nil {
			require.GreaterOrEqual(t, time.Now().UnixMilli(), counted+countEvery.Milliseconds())
			break
		}
	}
}

func TestCountLed(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, []int{rateClass(0), rateClass(999), rateClass(1000), rateClass(99_999), rateClass(100_000), rateClass(1e6), rateClass(1e7)})
}
