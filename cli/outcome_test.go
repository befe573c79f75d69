package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/internal/wire"
	"github.com/eastguard/eastguard/sdk"
)

// brokenSocket is what a write to a broker that has gone away fails with, as the SDK hands it on.
func brokenSocket() error {
	cause := &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	return base.Wrap(sdk.CodeUnreachable, "create topic", base.Wrap(sdk.CodeUnreachable, "connection to n1", cause))
}

func TestABrokenSocketIsNoBrokenPipe(t *testing.T) {
	_, errs, err := run(t, &fakeClient{admin: &fakeAdmin{err: brokenSocket()}}, "", false, nil, "create-topic", "t", "1")
	if ExitCode(err) != ExitUnreachable || !strings.Contains(errs, "[UNREACHABLE]") {
		t.Errorf("exit %d, %q: a lost broker must not look like success", ExitCode(err), errs)
	}
}

func TestAReaderThatHasSeenEnoughIsNoError(t *testing.T) {
	streams, _, _, errBuf := term.Test()
	streams.Out = brokenPipe{}
	s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }, Connect: func(Target) (Client, error) {
		return &fakeClient{admin: &fakeAdmin{topics: topicsOf("t")}}, nil
	}})
	if err := s.execute(context.Background(), streams, []string{"topic", "list"}); err != nil || errBuf.Len() > 0 {
		t.Errorf("%v %q", err, errBuf)
	}
}

type brokenPipe struct{ io.Writer }

func (brokenPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// stoppedAdmin is interrupted by a signal while a request is on its way.
type stoppedAdmin struct {
	fakeAdmin
	stop    func()
	outcome sdk.Outcome
}

func (a *stoppedAdmin) CreateTopic(ctx context.Context, _ sdk.CreateTopic) (sdk.CreatedTopic, error) {
	a.stop()
	return sdk.CreatedTopic{}, base.Wrap(sdk.CodeCanceled, "create topic", ctx.Err()).WithOutcome(a.outcome)
}

func TestAnInterruptedChangeMayHaveHappened(t *testing.T) {
	for _, tt := range []struct {
		outcome sdk.Outcome
		says    string
	}{{sdk.OutcomeUnknown, "may have"}, {sdk.OutcomeNotApplied, ""}} {
		ctx, cancel := context.WithCancelCause(context.Background())
		admin := &stoppedAdmin{outcome: tt.outcome, stop: func() { cancel(quiet{signalled{syscall.SIGINT}}) }}
		streams, _, _, errBuf := term.Test()
		s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }, Connect: func(Target) (Client, error) {
			return adminOnly{admin: admin}, nil
		}})
		err := s.execute(ctx, streams, []string{"create-topic", "t", "1", "-o", "json"})
		if ExitCode(err) != ExitInterrupted {
			t.Errorf("%s: exit %d", tt.outcome, ExitCode(err))
		}
		if tt.says == "" {
			if errBuf.Len() > 0 {
				t.Errorf("%s: says %q", tt.outcome, errBuf)
			}
			continue
		}
		var doc errorDocument
		if err := json.Unmarshal(errBuf.Bytes(), &doc); err != nil || doc.Error.Outcome != "unknown" || !strings.Contains(doc.Error.Message, tt.says) {
			t.Errorf("%s: %v %q", tt.outcome, err, errBuf)
		}
	}
}

type adminOnly struct {
	Client
	admin Admin
}

func (c adminOnly) Admin() Admin { return c.admin }
func (c adminOnly) Close() error { return nil }

func TestARecordThatTimeRanOutFor(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	closed := errorf(sdk.CodeShuttingDown, "the producer is closed").WithOutcome(sdk.OutcomeUnknown)
	r := describe(closedEarly(over, closed))
	if r.Code != "TIMEOUT" || r.Exit != ExitUnknownOutcome || r.Outcome != "unknown" || !strings.Contains(r.Hint, "look before") {
		t.Errorf("%+v", r)
	}
	if err := closedEarly(over, closed.WithOutcome(sdk.OutcomeNotApplied)); err != nil {
		t.Errorf("nothing left open: %v", err)
	}
	if err := closedEarly(t.Context(), closed); err != error(closed) {
		t.Errorf("in time: %v", err)
	}
	if err := closedEarly(over, nil); err != nil {
		t.Error(err)
	}
}

// Of several things done, some may have been and some not: neither the whole nor its worst part is "not applied".
func TestPartialOutcome(t *testing.T) {
	fail := func(_ int, r sdk.Record) error {
		switch string(r.Value) {
		case "bad":
			return errorf(sdk.CodeRecordTooLarge, "too large")
		case "lost":
			return errorf(sdk.CodeTimeout, "no answer").WithOutcome(sdk.OutcomeUnknown)
		}
		return nil
	}
	for in, want := range map[string]struct {
		outcome string
		exit    int
		goOn    bool
	}{
		"a\nbad\n":       {"applied", ExitPartial, true},
		"bad\nlost\na\n": {"unknown", ExitPartial, true},
		"bad\n":          {"not_applied", ExitUsage, false},
		"lost\n":         {"unknown", ExitUnknownOutcome, false},
	} {
		args := []string{"publish", "t", "-o", "jsonl", "-q"}
		if want.goOn {
			args = append(args, "--continue-on-error")
		}
		_, errs, err := run(t, &fakeClient{producer: &fakeProducer{fail: fail}}, in, false, nil, args...)
		var doc errorDocument
		if jerr := json.Unmarshal([]byte(errs), &doc); jerr != nil || doc.Error.Outcome != want.outcome || ExitCode(err) != want.exit {
			t.Errorf("%q: exit %d, %q; want exit %d, outcome %s", in, ExitCode(err), errs, want.exit, want.outcome)
		}
	}
}

// A broker that refuses for as long as the command lasts has said why, and that nothing was written.
func TestPublishTellsWhyItWasNotDelivered(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	srv := mux.NewServer(mux.ServerOptions{
		Hello: func(wire.HelloRequest) (wire.HelloResponse, error) { return wire.HelloResponse{Node: "n1"}, nil },
		Handler: mux.HandlerFunc(func(_ context.Context, r *mux.Request) {
			if r.Kind == wire.KindProduce {
				r.Fail(base.CodeDiskFull)
				return
			}
			r.Reply(wire.Encode(wire.RouteResponse{Topic: wire.TopicRoute{
				ID: base.TopicID{1}, Name: "t", Version: 1, Nodes: []wire.NodeAddress{{ID: "n1", Address: addr}},
				Ranges: []wire.RangeRoute{{ID: 1, State: base.StateActive, Active: &wire.SegmentRoute{ID: 1, State: base.StateActive, Replicas: []base.NodeID{"n1"}}}},
			}}))
		}),
	})
	go func() { _ = srv.Serve(listener) }()
	defer srv.Close()
	streams, _, _, errs := term.Test()
	s := NewSession(Deps{IO: streams, Getenv: env("EG_SEEDS=" + addr)})
	defer s.Close()
	err = s.execute(t.Context(), streams, []string{"publish", "t", "k", "v", "-t", "1", "-o", "json"})
	var doc errorDocument
	if jerr := json.Unmarshal(errs.Bytes(), &doc); jerr != nil || doc.Error.Code != "DISK_FULL" || doc.Error.Outcome != "not_applied" || ExitCode(err) == ExitUnknownOutcome {
		t.Errorf("exit %d, %s", ExitCode(err), errs)
	}
}

func TestTheUnknownFailureIsReportedFirst(t *testing.T) {
	b := &bulk{publishOptions: &publishOptions{}, stopped: make(chan struct{})}
	b.fail(errorf(sdk.CodeDiskFull, "full"))
	b.fail(errorf(sdk.CodeTimeout, "no answer").WithOutcome(sdk.OutcomeUnknown))
	b.fail(errorf(sdk.CodeDiskFull, "full"))
	if got := fmt.Sprint(b.first); got != "no answer" {
		t.Errorf("reports %q", got)
	}
}

// hostileAdmin is a broker that wants to paint on the terminal of whoever asks it.
type hostileAdmin struct{ fakeAdmin }

const paint = "n\x1b[2J\u202e1"

func (a *hostileAdmin) CreateTopic(context.Context, sdk.CreateTopic) (sdk.CreatedTopic, error) {
	t := fakeTopic("t", 1)
	t.Summary.Name = paint
	return sdk.CreatedTopic{Topic: t, ShardLeader: paint}, nil
}

func (a *hostileAdmin) ClusterHealth(context.Context) (sdk.ClusterHealth, error) {
	return sdk.ClusterHealth{Observer: paint, Nodes: 1, Checks: []sdk.HealthCheck{{ID: paint, Name: paint, Detail: paint}}}, nil
}

func (a *hostileAdmin) ClusterStatus(context.Context) (sdk.ClusterStatus, error) {
	return sdk.ClusterStatus{
		Observer: paint, Nodes: []sdk.NodeStatus{{ID: paint, State: paint, Address: paint, Version: paint, Rack: paint}},
		Shards: []sdk.ShardStatus{{State: paint}}, Events: []sdk.Event{{Type: paint, Subject: paint, Detail: paint, Cause: paint}},
	}, nil
}

func (a *hostileAdmin) DescribeTopic(context.Context, string) (sdk.TopicDetail, error) {
	t := fakeTopic(paint, 1)
	t.Summary.ShardLeader, t.Summary.Compression, t.Summary.Labels = paint, paint, map[string]string{paint: paint}
	t.Settings = []sdk.Setting{{Key: paint, Value: paint, Source: paint, Default: paint, Help: paint}}
	return t, nil
}

func (a *hostileAdmin) ListTopics(context.Context, sdk.ListTopics) (sdk.TopicList, error) {
	t, _ := a.DescribeTopic(context.Background(), "")
	return sdk.TopicList{Topics: []sdk.TopicSummary{t.Summary}}, nil
}

func (a *hostileAdmin) DeleteTopic(context.Context, sdk.DeleteTopic) (sdk.DeletedTopic, error) {
	return sdk.DeletedTopic{}, base.Errorf(sdk.CodeDenied, paint, "%s", paint).WithHint("%s", paint)
}

func (hostileProducer) Send(context.Context, sdk.Record) (sdk.Ack, error) {
	return sdk.Ack{Replicas: []sdk.NodeID{paint}, Segment: 1, Position: sdk.Position{Topic: paint, Range: 1}}, nil
}

func (hostileProducer) Close(context.Context) error { return nil }

type hostileProducer struct{ Producer }

func (c adminOnly) NewProducer(string, ...sdk.ProducerOption) (Producer, error) {
	return hostileProducer{}, nil
}

// Nothing that a broker says reaches the terminal as a control sequence, in any form of output.
func TestABrokerCannotPaint(t *testing.T) {
	lines := []string{
		"create-topic t 1", "cluster health", "cluster status", "topic describe t", "topic list", "topic delete t --yes", "version --cluster",
		"publish t k v",
	}
	shapes := []string{"", "-o wide", "-o json", "-o yaml", "-o csv", "-o tsv", "-o name", "--jq ..", "--template {{.}}"}
	for _, line := range lines {
		for _, shape := range shapes {
			streams, _, out, errs := term.Test()
			streams.SetTTY(true, true, true)
			s := NewSession(Deps{IO: streams, Getenv: env("NO_COLOR=1"), Connect: func(Target) (Client, error) {
				return adminOnly{admin: &hostileAdmin{}}, nil
			}})
			_ = s.execute(context.Background(), streams, append(strings.Fields(line), strings.Fields(shape)...))
			for _, text := range []string{out.String(), errs.String()} {
				if strings.ContainsAny(text, "\x1b\u202e") {
					t.Errorf("%s %s prints %q", line, shape, text)
				}
			}
		}
	}
}

func env(pair string) func(string) string {
	name, value, _ := strings.Cut(pair, "=")
	return func(n string) string { return map[string]string{name: value}[n] }
}

// A change whose result cannot be printed has been made all the same.
func TestAFullDiskDoesNotUndoWhatWasDone(t *testing.T) {
	for _, tt := range []struct {
		outcome string
		args    []string
	}{
		{"applied", []string{"publish", "t", "k", "v"}},
		{"applied", []string{"publish", "t", "k", "v", "--jq", ".nothing | error"}},
		{"applied", []string{"publish", "t", "k{{.Count}}", "v", "-n", "3", "-o", "jsonl"}},
		{"applied", []string{"publish", "t", "k{{.Count}}", "v", "-n", "3", "--continue-on-error", "--jq", ".nothing | error"}},
		{"applied", []string{"create-topic", "new", "1"}},
		{"applied", []string{"topic", "delete", "t", "--yes"}},
		{"applied", []string{"topic", "alter", "t", "compression=zstd"}},
		{"not_applied", []string{"create-topic", "new", "1", "--dry-run"}},
		{"not_applied", []string{"topic", "list"}},
	} {
		streams, _, _, errBuf := term.Test()
		streams.Out = fullDisk{}
		s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }, Connect: func(Target) (Client, error) {
			return &fakeClient{admin: &fakeAdmin{topics: topicsOf("t")}, producer: &fakeProducer{}}, nil
		}})
		err := s.execute(context.Background(), streams, tt.args)
		if r := describe(err); err == nil || r.Outcome != tt.outcome {
			t.Errorf("%q: %s, %v %q", tt.args, r.Outcome, err, errBuf)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}
