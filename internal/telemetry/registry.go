package telemetry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// MaxSeries is how many metrics a registry takes. Labels tell a few things of one kind apart, known when the program
// is written; whoever reaches this bound labels by something that users name.
const MaxSeries = 2048

// Registry holds one process's metrics by name and labels. Asking for one twice gives the same metric, so that parts
// which are made again (a connection, a segment) share it. The zero Registry is not usable; use [NewRegistry].
type Registry struct {
	mu       sync.Mutex
	metrics  map[string]Metric // by ID
	families map[string]Metric // the first of each name: its kind and help are those of all
}

// Metric is one row of a registry: exactly one of the five kinds is set.
type Metric struct {
	Name        string
	Labels      string // as the exposition prints them, without the braces: kind="produce",result="ok"
	Help        string // one sentence
	Counter     *Counter
	CounterFunc func() float64
	Gauge       *Gauge
	GaugeFunc   func() float64
	Histogram   *Histogram
}

// ID is the name with its labels, unique in a registry.
func (m *Metric) ID() string {
	if m.Labels == "" {
		return m.Name
	}
	return m.Name + "{" + m.Labels + "}"
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{metrics: make(map[string]Metric), families: make(map[string]Metric)}
}

// Counter returns the counter of that name. Counters end in _total. Labels are pairs of a name and a value.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	return r.get(name, help, labels, func(m *Metric) { m.Counter = NewCounter() }).Counter
}

// CounterFunc registers a counter that somebody else keeps; read must be cheap and must not block. The last function
// registered stays: it belongs to the part that lives.
func (r *Registry) CounterFunc(name, help string, read func() float64, labels ...string) {
	r.get(name, help, labels, func(m *Metric) { m.CounterFunc = read })
}

// Gauge returns the gauge of that name.
func (r *Registry) Gauge(name, help string, labels ...string) *Gauge {
	return r.get(name, help, labels, func(m *Metric) { m.Gauge = new(Gauge) }).Gauge
}

// GaugeFunc registers a gauge that is computed when it is read; read must be cheap and must not block. The last
// function registered stays: it belongs to the part that lives.
func (r *Registry) GaugeFunc(name, help string, read func() float64, labels ...string) {
	r.get(name, help, labels, func(m *Metric) { m.GaugeFunc = read })
}

// Histogram returns the latency histogram of that name. Histograms end in _seconds.
func (r *Registry) Histogram(name, help string, labels ...string) *Histogram {
	return r.get(name, help, labels, func(m *Metric) { m.Histogram = NewHistogram() }).Histogram
}

var (
	metricName = regexp.MustCompile(`^eastguard_[a-z0-9]+(_[a-z0-9]+)*$`)
	labelName  = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`)
)

// get finds or makes a metric. A bad name and a name used for two kinds are mistakes of the program, which the
// first start of it meets: they panic.
func (r *Registry) get(name, help string, labels []string, make func(*Metric)) Metric {
	if !metricName.MatchString(name) || help == "" {
		panic(fmt.Sprintf("telemetry: metric %q needs a name of the form eastguard_words_in_snake_case and a help text", name))
	}
	made := Metric{Name: name, Labels: formatLabels(name, labels), Help: help}
	make(&made)

	r.mu.Lock()
	defer r.mu.Unlock()
	family, ok := r.families[name]
	if !ok {
		r.families[name], family = made, made
	}
	if family.kind() != made.kind() || family.Help != help {
		panic(fmt.Sprintf("telemetry: metric %s is a %s that counts %q already and cannot be a %s that counts %q",
			name, family.kind(), family.Help, made.kind(), help))
	}
	m, ok := r.metrics[made.ID()]
	if ok && made.CounterFunc == nil && made.GaugeFunc == nil {
		return m
	}
	if !ok && len(r.metrics) >= MaxSeries {
		panic(fmt.Sprintf("telemetry: metric %s would be one more than %d", made.ID(), MaxSeries))
	}
	r.metrics[made.ID()] = made
	return made
}

func (m *Metric) kind() string {
	switch {
	case m.Counter != nil, m.CounterFunc != nil:
		return "counter"
	case m.Histogram != nil:
		return "histogram"
	default:
		return "gauge"
	}
}

// formatLabels prints pairs as the exposition wants them, sorted by name.
func formatLabels(metric string, pairs []string) string {
	if len(pairs)%2 != 0 {
		panic(fmt.Sprintf("telemetry: metric %s has a label without a value", metric))
	}
	list := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		if !labelName.MatchString(pairs[i]) || pairs[i] == "le" {
			panic(fmt.Sprintf("telemetry: metric %s has a label %q, which is no name of the form words_in_snake_case or has a meaning of its own", metric, pairs[i]))
		}
		list = append(list, pairs[i]+`="`+escapeLabel.Replace(pairs[i+1])+`"`)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// Metrics lists everything registered, by name and labels.
func (r *Registry) Metrics() []Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Metric, 0, len(r.metrics))
	for _, m := range r.metrics {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Labels, b.Labels))
	})
	return list
}
