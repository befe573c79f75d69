package telemetry

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"
)

// ContentType is what [Registry.WriteText] writes, as HTTP names it.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// bounds are the buckets that scrapes see, of every histogram alike, so that they can be added over nodes. The finer
// buckets beneath count towards the first of these that lies wholly above them: an observation just below a bound may
// be counted a bucket higher, by at most 3 % of its value.
var bounds = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// WriteText prints every metric in the text format of Prometheus. Its cost is that of the metrics registered; nothing
// is locked while it writes, so a reader that dawdles holds nobody up.
func (r *Registry) WriteText(w io.Writer) error {
	t := textWriter{w: bufio.NewWriter(w)}
	for _, m := range r.Metrics() {
		t.metric(&m)
	}
	return t.w.Flush() // bufio keeps the first error
}

// textWriter prints samples, and before the first of each name what it is.
type textWriter struct {
	w    *bufio.Writer
	name string
	num  []byte
}

func (t *textWriter) metric(m *Metric) {
	if m.Name != t.name {
		t.name = m.Name
		t.put("# HELP ", m.Name, " ", escapeHelp.Replace(m.Help), "\n# TYPE ", m.Name, " ", m.kind(), "\n")
	}
	switch {
	case m.Counter != nil:
		t.count(m.Name, m.Labels, m.Counter.Value())
	case m.CounterFunc != nil:
		t.float(m.Name, m.Labels, m.CounterFunc())
	case m.Gauge != nil:
		t.sample(m.Name, m.Labels, strconv.AppendInt(t.num[:0], m.Gauge.Value(), 10))
	case m.GaugeFunc != nil:
		t.float(m.Name, m.Labels, m.GaugeFunc())
	case m.Histogram != nil:
		t.histogram(m)
	}
}

func (t *textWriter) histogram(m *Metric) {
	counts, sum := m.Histogram.cumulative(bounds)
	labels := m.Labels
	if labels != "" {
		labels += ","
	}
	for i, n := range counts {
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i].Seconds(), 'g', -1, 64)
		}
		t.count(m.Name+"_bucket", labels+`le="`+le+`"`, n)
	}
	t.float(m.Name+"_sum", m.Labels, sum.Seconds())
	t.count(m.Name+"_count", m.Labels, counts[len(bounds)])
}

func (t *textWriter) count(name, labels string, n uint64) {
	t.sample(name, labels, strconv.AppendUint(t.num[:0], n, 10))
}

func (t *textWriter) float(name, labels string, f float64) {
	t.sample(name, labels, strconv.AppendFloat(t.num[:0], f, 'g', -1, 64)) // NaN, +Inf and -Inf are spelled as the format has them
}

func (t *textWriter) sample(name, labels string, value []byte) {
	t.num = value[:0]
	t.put(name)
	if labels != "" {
		t.put("{", labels, "}")
	}
	t.put(" ")
	_, _ = t.w.Write(value)
	t.put("\n")
}

func (t *textWriter) put(parts ...string) {
	for _, p := range parts {
		_, _ = t.w.WriteString(p)
	}
}

// cumulative counts the observations up to each bound, and all of them at the end, and their sum.
func (h *Histogram) cumulative(bounds []time.Duration) (counts []uint64, sum time.Duration) {
	counts = make([]uint64, len(bounds)+1)
	at, seen := 0, uint64(0)
	for i := range h.buckets {
		for at < len(bounds) && upperBound(i) > int64(bounds[at]) {
			counts[at] = seen
			at++
		}
		seen += h.buckets[i].Load()
	}
	for ; at < len(counts); at++ {
		counts[at] = seen
	}
	return counts, time.Duration(h.sum.Value())
}
