package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

var testNow = time.Date(2026, 11, 29, 12, 4, 31, 207e6, time.UTC)

// fakeAdmin is a cluster of topics in a map. Each call is noted.
type fakeAdmin struct {
	Admin
	topics  map[string]sdk.TopicDetail
	status  sdk.ClusterStatus
	health  []sdk.ClusterHealth // one an answer, the last for ever
	err     error               // of every call
	missing []sdk.ShardID
	fit     int // nodes that can take a copy of a new topic; 0: as many as are wanted
	calls   []string
	onNote  func(n int) // before the n-th call is answered
	altered sdk.AlterTopic
	deleted []sdk.DeleteTopic

	fakeNodes
	fakeSegments
}

func (f *fakeAdmin) note(call string) error {
	f.calls = append(f.calls, call)
	if f.onNote != nil {
		f.onNote(len(f.calls))
	}
	return f.err
}

func (f *fakeAdmin) find(name string) (sdk.TopicDetail, error) {
	if t, ok := f.topics[name]; ok {
		return t, nil
	}
	return sdk.TopicDetail{}, errorf(sdk.CodeTopicNotFound, "topic %q not found", name)
}

func (f *fakeAdmin) CreateTopic(_ context.Context, r sdk.CreateTopic) (sdk.CreatedTopic, error) {
	if err := f.note("create " + r.Name); err != nil {
		return sdk.CreatedTopic{}, err
	}
	if _, ok := f.topics[r.Name]; ok {
		return sdk.CreatedTopic{}, errorf(sdk.CodeTopicExists, "topic %q already exists", r.Name)
	}
	t := fakeTopic(r.Name, max(r.Ranges, 1))
	t.Summary.ReplicationFactor = r.Config.ReplicationFactor
	if f.fit > 0 {
		t.Ranges = placedOn(min(f.fit, r.Config.ReplicationFactor))
	}
	return sdk.CreatedTopic{Topic: t, Shard: sdk.ShardID{Root: 12}, ShardLeader: "n2"}, nil
}

func (f *fakeAdmin) ListTopics(context.Context, sdk.ListTopics) (sdk.TopicList, error) {
	if err := f.note("list"); err != nil {
		return sdk.TopicList{}, err
	}
	list := sdk.TopicList{Missing: f.missing}
	for _, t := range f.topics {
		list.Topics = append(list.Topics, t.Summary)
	}
	return list, nil
}

func (f *fakeAdmin) DescribeTopic(_ context.Context, name string) (sdk.TopicDetail, error) {
	if err := f.note("describe " + name); err != nil {
		return sdk.TopicDetail{}, err
	}
	return f.find(name)
}

func (f *fakeAdmin) AlterTopic(_ context.Context, r sdk.AlterTopic) (sdk.AlteredTopic, error) {
	if err := f.note("alter " + r.Name); err != nil {
		return sdk.AlteredTopic{}, err
	}
	t, err := f.find(r.Name)
	if err != nil {
		return sdk.AlteredTopic{}, err
	}
	if !r.DryRun {
		f.altered = r
		if r.ExpectVersion != uint64(t.Summary.Version) {
			return sdk.AlteredTopic{}, errorf(sdk.CodePreconditionFailed, "the topic is at another version")
		}
	}
	before, after := map[string]string{}, map[string]string{}
	for k, v := range r.Set {
		before[k], _ = t.Config.Get(k)
		after[k] = v
	}
	return sdk.AlteredTopic{Before: before, After: after, Version: t.Summary.Version}, nil
}

func (f *fakeAdmin) DeleteTopic(_ context.Context, r sdk.DeleteTopic) (sdk.DeletedTopic, error) {
	if err := f.note("delete " + r.Name); err != nil {
		return sdk.DeletedTopic{}, err
	}
	t, err := f.find(r.Name)
	if err != nil {
		return sdk.DeletedTopic{}, err
	}
	if !r.DryRun {
		f.deleted = append(f.deleted, r)
	}
	return sdk.DeletedTopic{Topic: t.Summary.ID, Ranges: 1, Segments: 2, Bytes: 2048, Version: t.Summary.Version}, nil
}

func (f *fakeAdmin) ClusterHealth(context.Context) (sdk.ClusterHealth, error) {
	if err := f.note("health"); err != nil {
		return sdk.ClusterHealth{}, err
	}
	h := f.health[0]
	if len(f.health) > 1 {
		f.health = f.health[1:]
	}
	return h, nil
}

func (f *fakeAdmin) ClusterStatus(context.Context) (sdk.ClusterStatus, error) {
	return f.status, f.note("status")
}

func (f *fakeAdmin) Offsets(_ context.Context, topic string, _ sdk.Start) ([]sdk.Position, error) {
	if err := f.note("offsets " + topic); err != nil {
		return nil, err
	}
	if _, err := f.find(topic); err != nil {
		return nil, err
	}
	return []sdk.Position{{Topic: topic, Range: 1, Offset: 0}}, nil
}

func fakeTopic(name string, ranges int) sdk.TopicDetail {
	return sdk.TopicDetail{
		Summary: sdk.TopicSummary{
			ID: base.UUID{1}, Name: name, Version: 7, State: base.StateActive, ReplicationFactor: 3, Ranges: ranges, Bytes: 2048,
			CreatedMs: testNow.Add(-time.Hour).UnixMilli(), Shard: sdk.ShardID{Root: 12}, ShardLeader: "n2", Compression: "lz4",
			Labels: map[string]string{"team": "shop"}, RetentionMs: 7 * 24 * 3600 * 1000,
		},
		Config: sdk.TopicConfig{ReplicationFactor: 3, Retention: 7 * 24 * time.Hour, Compression: "lz4"},
	}
}

// placedOn is one range, of which so many nodes hold what is written.
func placedOn(nodes int) []sdk.RangeDetail {
	s := sdk.SegmentDetail{ID: 1, State: base.StateActive}
	for i := range nodes {
		s.Replicas = append(s.Replicas, sdk.ReplicaDetail{Node: sdk.NodeID("n" + itoa(int64(i+1))), State: "in_sync"})
	}
	return []sdk.RangeDetail{{ID: 1, State: base.StateActive, Segments: []sdk.SegmentDetail{s}}}
}

func topicsOf(names ...string) map[string]sdk.TopicDetail {
	m := map[string]sdk.TopicDetail{}
	for _, n := range names {
		m[n] = fakeTopic(n, 1)
	}
	return m
}

// fakeClient is a fakeAdmin with producers and consumers that the test scripts.
type fakeClient struct {
	admin    *fakeAdmin
	producer *fakeProducer
	consumer *fakeConsumer

	events   []sdk.WatchEvent
	watchErr error
	watched  sdk.WatchOptions

	lines  []sdk.LogEvent
	logged sdk.LogOptions
}

func (f *fakeClient) Admin() Admin { return f.admin }
func (f *fakeClient) Close() error { return nil }

func (f *fakeClient) NewProducer(string, ...sdk.ProducerOption) (Producer, error) {
	return f.producer, nil
}

func (f *fakeClient) Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error] {
	return func(yield func(sdk.WatchEvent, error) bool) {
		f.watched = opts
		for _, ev := range f.events {
			if !yield(ev, f.watchErr) || f.watchErr != nil {
				return
			}
		}
		if !opts.Once {
			<-ctx.Done()
		}
	}
}

func (f *fakeClient) Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error] {
	return func(yield func(sdk.LogEvent, error) bool) {
		f.logged = opts
		for _, ev := range f.lines {
			if !yield(ev, nil) {
				return
			}
		}
		if opts.Follow {
			<-ctx.Done()
		}
	}
}

func (f *fakeClient) NewConsumer(...sdk.ConsumerOption) (Consumer, error) { return f.consumer, nil }

// fakeProducer acks each record at the next offset of r1, unless told otherwise.
type fakeProducer struct {
	mu     sync.Mutex
	sent   []sdk.Record
	fail   func(n int, r sdk.Record) error
	trace  sdk.Trace
	ack    func(*sdk.Ack) // changes each ack
	closed bool
}

func (p *fakeProducer) take(r sdk.Record) (sdk.Ack, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(len(p.sent), r); err != nil {
			return sdk.Ack{}, err
		}
	}
	p.sent = append(p.sent, r)
	ack := sdk.Ack{
		Position: sdk.Position{Topic: "t", Range: 1, Offset: int64(len(p.sent) - 1)}, Timestamp: testNow, Segment: 5,
		Replicas: []sdk.NodeID{"n1", "n2", "n3"},
	}
	if p.ack != nil {
		p.ack(&ack)
	}
	return ack, nil
}

func (p *fakeProducer) Send(_ context.Context, r sdk.Record) (sdk.Ack, error) { return p.take(r) }

func (p *fakeProducer) SendTraced(_ context.Context, r sdk.Record) (sdk.Ack, sdk.Trace, error) {
	ack, err := p.take(r)
	return ack, p.trace, err
}

func (p *fakeProducer) SendAsync(r sdk.Record, done func(sdk.Ack, error)) error {
	done(p.take(r))
	return nil
}

func (p *fakeProducer) Flush(context.Context) error { return nil }
func (p *fakeProducer) Close(context.Context) error { p.closed = true; return nil }
func (p *fakeProducer) Stats() sdk.ProducerStats    { return sdk.ProducerStats{} }

// fakeConsumer gives its messages and then err, or waits.
type fakeConsumer struct {
	batches [][]sdk.Message
	err     error // nil = wait for the context
	last    func() error
	closed  bool
}

func (c *fakeConsumer) LastError() error {
	if c.last == nil {
		return nil
	}
	return c.last()
}

func (c *fakeConsumer) Poll(ctx context.Context) ([]sdk.Message, error) {
	if len(c.batches) > 0 {
		b := c.batches[0]
		c.batches = c.batches[1:]
		return b, nil
	}
	if c.err != nil {
		return nil, c.err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (c *fakeConsumer) Close() error { c.closed = true; return nil }

func message(offset int64, key, value string) sdk.Message {
	m := sdk.Message{Range: 1, Offset: offset}
	m.Topic, m.Key, m.Value, m.Timestamp = "t", []byte(key), []byte(value), testNow
	return m
}

// run runs one line against a fake cluster and returns what it printed.
func run(t *testing.T, client *fakeClient, stdin string, tty bool, env []string, args ...string) (out, errs string, err error) {
	t.Helper()
	if client.admin == nil {
		client.admin = &fakeAdmin{topics: topicsOf("t")}
	}
	vars := map[string]string{"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
	for _, e := range env {
		for i := range e {
			if e[i] == '=' {
				vars[e[:i]] = e[i+1:]
				break
			}
		}
	}
	streams, in, outBuf, errBuf := term.Test()
	in.WriteString(stdin)
	streams.SetTTY(tty, tty, tty)
	streams.SetSize(120, 40)
	s := NewSession(Deps{
		IO: streams, Getenv: func(name string) string { return vars[name] }, Now: func() time.Time { return testNow }, Version: "1.2.3",
		Connect: func(Target) (Client, error) { return client, nil },
	})
	err = s.execute(context.Background(), streams, args)
	return outBuf.String(), errBuf.String(), err
}

var errEnd = io.EOF

func newWriter(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }

func written(t *testing.T, f *recordFormat, m *sdk.Message, tty bool) string {
	t.Helper()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := f.write(w, m, tty); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
