package telemetry

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func expose(t *testing.T, r *Registry) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	return b.String()
}

func TestExposition(t *testing.T) {
	r := NewRegistry()
	r.Counter("eastguard_requests_total", "Requests, by kind.", "kind", "produce").Add(7)
	r.Counter("eastguard_requests_total", "Requests, by kind.", "kind", "fetch").Add(2)
	r.CounterFunc("eastguard_frames_total", "Frames.", func() float64 { return 1e9 + 1 }, "lane", "bulk", "direction", "in")
	r.Gauge("eastguard_connections", `A \ and`+"\na new line.").Set(-3)
	r.GaugeFunc("eastguard_full", "Not a number.", math.NaN)
	r.GaugeFunc("eastguard_share", "A part.", func() float64 { return 0.25 }, "version", "v1 \"odd\"\\\n")
	h := r.Histogram("eastguard_ack_seconds", "From arrival to ack.")
	for _, d := range []time.Duration{50 * time.Microsecond, 3 * time.Millisecond, 3 * time.Millisecond, time.Hour} {
		h.Observe(d)
	}
	require.Equal(t, `# HELP eastguard_ack_seconds From arrival to ack.
# TYPE eastguard_ack_seconds histogram
eastguard_ack_seconds_bucket{le="0.0001"} 1
eastguard_ack_seconds_bucket{le="0.00025"} 1
eastguard_ack_seconds_bucket{le="0.0005"} 1
eastguard_ack_seconds_bucket{le="0.001"} 1
eastguard_ack_seconds_bucket{le="0.0025"} 1
eastguard_ack_seconds_bucket{le="0.005"} 3
eastguard_ack_seconds_bucket{le="0.01"} 3
eastguard_ack_seconds_bucket{le="0.025"} 3
eastguard_ack_seconds_bucket{le="0.05"} 3
eastguard_ack_seconds_bucket{le="0.1"} 3
eastguard_ack_seconds_bucket{le="0.25"} 3
eastguard_ack_seconds_bucket{le="0.5"} 3
eastguard_ack_seconds_bucket{le="1"} 3
eastguard_ack_seconds_bucket{le="2.5"} 3
eastguard_ack_seconds_bucket{le="5"} 3
eastguard_ack_seconds_bucket{le="10"} 3
eastguard_ack_seconds_bucket{le="+Inf"} 4
eastguard_ack_seconds_sum 3600.00605
eastguard_ack_seconds_count 4
# HELP eastguard_connections A \\ and\na new line.
# TYPE eastguard_connections gauge
eastguard_connections -3
# HELP eastguard_frames_total Frames.
# TYPE eastguard_frames_total counter
eastguard_frames_total{direction="in",lane="bulk"} 1.000000001e+09
# HELP eastguard_full Not a number.
# TYPE eastguard_full gauge
eastguard_full NaN
# HELP eastguard_requests_total Requests, by kind.
# TYPE eastguard_requests_total counter
eastguard_requests_total{kind="fetch"} 2
eastguard_requests_total{kind="produce"} 7
# HELP eastguard_share A part.
# TYPE eastguard_share gauge
eastguard_share{version="v1 \"odd\"\\\n"} 0.25
`, expose(t, r))
}

// A histogram with labels has them beside the bucket's bound.
func TestLabelledHistogram(t *testing.T) {
	r := NewRegistry()
	r.Histogram("eastguard_wait_seconds", "Waits.", "kind", "a").Observe(time.Second)
	text := expose(t, r)
	require.Contains(t, text, `eastguard_wait_seconds_bucket{kind="a",le="+Inf"} 1`)
	require.Contains(t, text, `eastguard_wait_seconds_sum{kind="a"} 1`)
}

// Whatever a label holds, each sample stays on one line, and the value can be read back.
func TestLabelValuesSurvive(t *testing.T) {
	line := regexp.MustCompile(`^eastguard_x\{v="((?:[^"\\\n]|\\.)*)"\} 1$`)
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.String().Draw(rt, "value")
		r := NewRegistry()
		r.Gauge("eastguard_x", "X.", "v", value).Set(1)
		lines := strings.SplitN(strings.TrimSuffix(expose(t, r), "\n"), "\n", 3)
		m := line.FindStringSubmatch(lines[2])
		if m == nil || unescape.Replace(m[1]) != value {
			rt.Fatalf("%q printed as %q", value, lines[2])
		}
	})
}

// The buckets of a scrape never count an observation that lies above the bound, and miss at most those within 3 % of it.
func TestScrapedBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Int64Range(0, int64(20*time.Second))).Draw(t, "ns")
		h := NewHistogram()
		for _, ns := range list {
			h.Observe(time.Duration(ns))
		}
		counts, _ := h.cumulative(bounds)
		for i, b := range bounds {
			var surely, atMost uint64
			for _, ns := range list {
				if ns <= int64(b) {
					atMost++
				}
				if ns+ns/subBuckets+1 <= int64(b) {
					surely++
				}
			}
			if counts[i] < surely || counts[i] > atMost {
				t.Fatalf("%d observations up to %s, want %d to %d", counts[i], b, surely, atMost)
			}
		}
		if counts[len(bounds)] != uint64(len(list)) {
			t.Fatalf("%d of %d observations", counts[len(bounds)], len(list))
		}
	})
}

func TestLabelsOfARegistry(t *testing.T) {
	r := NewRegistry()
	c := r.Counter("eastguard_a_total", "A.", "x", "1", "y", "2")
	require.Same(t, c, r.Counter("eastguard_a_total", "A.", "y", "2", "x", "1"), "in any order")
	require.NotSame(t, c, r.Counter("eastguard_a_total", "A.", "y", "2", "x", "2"))
	require.Equal(t, `eastguard_a_total{x="1",y="2"}`, r.Metrics()[0].ID())

	require.Panics(t, func() { r.Gauge("eastguard_a_total", "A.") }, "one name, one kind")
	require.Panics(t, func() { r.Counter("eastguard_a_total", "B.") }, "one name, one help")
	require.Panics(t, func() { r.Counter("eastguard_b_total", "B.", "x") }, "no value")
	require.Panics(t, func() { r.Counter("eastguard_b_total", "B.", "X y", "1") })
	require.Panics(t, func() { r.Counter("eastguard_b_total", "B.", "le", "1") }, "a histogram's own")
}

// A label with a user's names in it is a mistake that shows before it fills the memory.
func TestSeriesAreBounded(t *testing.T) {
	r := NewRegistry()
	for i := range MaxSeries {
		r.Gauge("eastguard_topic", "By topic.", "topic", fmt.Sprint(i))
	}
	require.Panics(t, func() { r.Gauge("eastguard_topic", "By topic.", "topic", "more") })
	require.NotPanics(t, func() { r.Gauge("eastguard_topic", "By topic.", "topic", "7") })
}

// A part that is made again takes its functions over, so that nobody reads one that has ended.
func TestLastFunctionStays(t *testing.T) {
	r := NewRegistry()
	for i := range 2 {
		r.GaugeFunc("eastguard_g", "G.", func() float64 { return float64(i) })
		r.CounterFunc("eastguard_c_total", "C.", func() float64 { return float64(i) })
	}
	require.Contains(t, expose(t, r), "eastguard_g 1\n")
	require.Contains(t, expose(t, r), "eastguard_c_total 1\n")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestReaderThatLeft(t *testing.T) {
	r := NewRegistry()
	r.Counter("eastguard_a_total", "A.")
	require.ErrorContains(t, r.WriteText(brokenPipe{}), "gone")
}

func BenchmarkWriteText(b *testing.B) {
	r := NewRegistry()
	for i := range 10 {
		r.Histogram(fmt.Sprintf("eastguard_h%d_seconds", i), "H.").Observe(time.Millisecond)
	}
	for i := range 100 {
		r.Counter("eastguard_c_total", "C.", "kind", fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = r.WriteText(new(strings.Builder))
	}
}
