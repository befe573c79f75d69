package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eastguard/eastguard/internal/sim/procs"
	"github.com/eastguard/eastguard/sdk"
)

// Options say what a run is like.
type Options struct {
	Cluster *procs.Cluster // which serves
	For     time.Duration
	Seed    uint64
	Choice  []Fault // they come in turn, in an order that the seed decides
	Calm    time.Duration
	Topics  int // of two ranges each
	Writers int // of each topic
	Config  sdk.TopicConfig
	Pace    time.Duration // of each writer, after each hundred records; 0: as fast as they are acked
	Log     io.Writer     // what happens, as it happens; nil: nothing
}

// Report is what a run came to.
type Report struct {
	Verdict
	Took   time.Duration
	Faults map[string]int // how often each came
	Gaps   []Gap
	Errors map[string]int // why records were not acked
}

// Run is a run under way.
type Run struct {
	Options
	over    <-chan struct{} // closed when the run is given up
	rand    *rand.Rand
	gaps    *gaps
	client  *sdk.Client
	writers map[string][]*writer // by topic
	readers map[string][]*reader
	done    map[string]int
	gone    Verdict // of topics that a fault has made and deleted
}

// Play plays a run to its end. An error means that the run itself could not be carried out, or that a reader was told
// what must not be; whether records are as they should be is in the report.
func Play(ctx context.Context, o Options) (*Report, error) {
	client, err := o.Cluster.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	r := &Run{
		Options: o, over: ctx.Done(), rand: newRand(o.Seed), client: client, writers: make(map[string][]*writer), readers: make(map[string][]*reader),
		done: make(map[string]int), gaps: &gaps{began: time.Now(), errors: make(map[string]int)},
	}
	if err := r.makeTopics(ctx); err != nil {
		return nil, err
	}
	r.gaps.began = time.Now()
	if err := r.work(ctx); err != nil {
		return nil, err
	}
	return r.report(ctx)
}

func (r *Run) makeTopics(ctx context.Context) error {
	for i := range r.Topics {
		topic := r.topic(i)
		if _, err := r.client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: topic, Ranges: 2, Config: r.Config}); err != nil {
			return err
		}
		for k := range r.Writers {
			r.writers[topic] = append(r.writers[topic], &writer{number: k, topic: topic, gaps: r.gaps})
		}
		r.readers[topic] = []*reader{{topic: topic, seen: make(map[sdk.RangeID][]id)}}
	}
	return nil
}

// topic is the name of the i-th topic.
func (r *Run) topic(i int) string { return fmt.Sprintf("chaos-%d", i) }

// work lets clients work while faults happen.
func (r *Run) work(ctx context.Context) error {
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var clients []*sdk.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	var writers, readers errgroup.Group
	for topic, list := range r.writers {
		for _, w := range list {
			client, err := r.Cluster.Client()
			if err != nil {
				return err
			}
			clients = append(clients, client)
			writers.Go(func() error { return w.run(writing, client, r.Pace) })
		}
		for _, reader := range r.readers[topic] {
			client, err := r.Cluster.Client()
			if err != nil {
				return err
			}
			clients = append(clients, client)
			readers.Go(func() error { return reader.run(reading, client) })
		}
	}
	err := r.disturb()
	stopWriting()
	err = errors.Join(err, writers.Wait())
	stopReading()
	return errors.Join(err, readers.Wait())
}

// disturb lets faults happen one after the other, each to a random node, until the time is over.
func (r *Run) disturb() error {
	deadline := r.gaps.began.Add(r.For)
	for r.wait(r.Calm) {
		for _, i := range r.rand.Perm(len(r.Choice)) {
			if time.Now().After(deadline) {
				return nil
			}
			if err := r.strike(r.Choice[i]); err != nil {
				return err
			}
			r.wait(r.Calm)
		}
		if len(r.Choice) == 0 {
			r.wait(time.Until(deadline))
		}
		if time.Now().After(deadline) {
			return nil
		}
	}
	return errors.New("given up")
}

func (r *Run) strike(f Fault) error {
	n := r.Cluster.Nodes[r.rand.IntN(len(r.Cluster.Nodes))]
	what := f.Name
	if !f.All {
		what += " of " + n.Name
	}
	over := r.gaps.fault(what)
	r.logf("%s", what)
	err := f.Do(r, n)
	over()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	r.logf("%s: over", what)
	r.done[f.Name]++
	return nil
}

// report reads everything back and judges it.
func (r *Run) report(ctx context.Context) (*Report, error) {
	rep := &Report{Took: time.Since(r.gaps.began), Faults: r.done, Errors: r.gaps.errors}
	rep.add(r.gone)
	for _, topic := range slices.Sorted(maps.Keys(r.writers)) {
		there, err := readAll(ctx, r.client, topic)
		if err != nil {
			return nil, err
		}
		rep.add(judge(topic, there.seen, r.writers[topic], r.readers[topic]))
	}
	rep.Gaps = r.gaps.list
	slices.SortFunc(rep.Gaps, func(a, b Gap) int { return int(a.At - b.At) })
	return rep, nil
}

// Print prints the report for people.
func (rep *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%d records acked in %v, %d not acked, %d read\n", rep.Acked, rep.Took.Round(time.Millisecond), rep.Failed, rep.Read)
	for _, name := range slices.Sorted(maps.Keys(rep.Faults)) {
		fmt.Fprintf(w, "  %3d × %s\n", rep.Faults[name], name)
	}
	fmt.Fprintf(w, "gaps of more than %v: %d\n", longer, len(rep.Gaps))
	for _, g := range rep.Gaps {
		fmt.Fprintf(w, "  %8.3fs  %-8s %7.3fs  %s\n", g.At.Seconds(), g.Topic, g.Took.Seconds(), g.Cause)
	}
	for _, why := range slices.Sorted(maps.Keys(rep.Errors)) {
		fmt.Fprintf(w, "not acked: %d × %s\n", rep.Errors[why], why)
	}
	for _, example := range rep.Examples {
		fmt.Fprintf(w, "WRONG: %s\n", example)
	}
	fmt.Fprintf(w, "lost %d, duplicated %d, reordered %d, read and gone %d\n", rep.Lost, rep.Duplicated, rep.Reordered, rep.Unread)
}

// wait waits and reports whether to go on.
func (r *Run) wait(d time.Duration) bool {
	select {
	case <-r.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (r *Run) logf(format string, args ...any) {
	if r.Log != nil {
		fmt.Fprintf(r.Log, "%8.3fs  %s\n", time.Since(r.gaps.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// index is the place of a node among the nodes.
func (r *Run) index(n *procs.Node) int { return slices.Index(r.Cluster.Nodes, n) }

func portOf(addr string) int {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return n
}
