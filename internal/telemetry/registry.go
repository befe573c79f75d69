package telemetry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// Registry holds one process's metrics by name. Asking for a name twice gives the same metric, so that parts
// which are made again (a connection, a segment) share it. The zero Registry is not usable; use [NewRegistry].
type Registry struct {
	mu      sync.Mutex
	metrics map[string]Metric
}

// Metric is one named row of a registry: exactly one of the four kinds is set.
type Metric struct {
	Name      string
	Help      string // one sentence
	Counter   *Counter
	Gauge     *Gauge
	GaugeFunc func() float64
	Histogram *Histogram
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{metrics: make(map[string]Metric)} }

// Counter returns the counter of that name. Counters end in _total.
func (r *Registry) Counter(name, help string) *Counter {
	return r.get(name, help, func(m *Metric) { m.Counter = NewCounter() }).Counter
}

// Gauge returns the gauge of that name.
func (r *Registry) Gauge(name, help string) *Gauge {
	return r.get(name, help, func(m *Metric) { m.Gauge = new(Gauge) }).Gauge
}

// GaugeFunc registers a gauge that is computed when it is read; read must be cheap and must not block. The
// first function registered under a name stays.
func (r *Registry) GaugeFunc(name, help string, read func() float64) {
	r.get(name, help, func(m *Metric) { m.GaugeFunc = read })
}

// Histogram returns the latency histogram of that name. Histograms end in _seconds.
func (r *Registry) Histogram(name, help string) *Histogram {
	return r.get(name, help, func(m *Metric) { m.Histogram = NewHistogram() }).Histogram
}

var metricName = regexp.MustCompile(`^eastguard_[a-z0-9]+(_[a-z0-9]+)*$`)

// get finds or makes a metric. A bad name and a name used for two kinds are mistakes of the program, which the
// first start of it meets: they panic.
func (r *Registry) get(name, help string, make func(*Metric)) Metric {
	if !metricName.MatchString(name) || help == "" {
		panic(fmt.Sprintf("telemetry: metric %q needs a name of the form eastguard_words_in_snake_case and a help text", name))
	}
	made := Metric{Name: name, Help: help}
	make(&made)

	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.metrics[name]
	if !ok {
		r.metrics[name] = made
		return made
	}
	if m.kind() != made.kind() {
		panic(fmt.Sprintf("telemetry: metric %s is a %s already and cannot be a %s", name, m.kind(), made.kind()))
	}
	return m
}

func (m Metric) kind() string {
	switch {
	case m.Counter != nil:
		return "counter"
	case m.Histogram != nil:
		return "histogram"
	default:
		return "gauge"
	}
}

// Metrics lists everything registered, by name.
func (r *Registry) Metrics() []Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Metric, 0, len(r.metrics))
	for _, m := range r.metrics {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
