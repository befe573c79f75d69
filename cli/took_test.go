package cli

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// thinker is a person at the terminal who takes a minute over every answer.
type thinker struct {
	io.Reader
	clock *atomic.Int64
}

func (p thinker) Read(b []byte) (int, error) {
	p.clock.Add(int64(time.Minute))
	return p.Reader.Read(b)
}

func TestTimeAtThePromptLeavesOutTheQuestion(t *testing.T) {
	var clock atomic.Int64
	streams, _, out, errs := term.Test()
	streams.SetTTY(true, true, true)
	streams.In = thinker{strings.NewReader("t\n"), &clock}
	s := NewSession(Deps{
		IO: streams, Getenv: env("NO_COLOR=1"), Now: func() time.Time { return testNow.Add(time.Duration(clock.Load())) },
		Connect: func(Target) (Client, error) { return &fakeClient{admin: &fakeAdmin{topics: topicsOf("t")}}, nil },
	})
	s.repl.timing = true
	r := &repl{Session: s, tookOver: defaultTookOver}
	lines, err := script.Parse("topic delete t")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.runOne(t.Context(), lines[0]); err != nil || !strings.HasSuffix(errs.String(), "(0.00 ms)\n") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

// silentProducer takes records, and nothing ever comes back.
type silentProducer struct{ fakeProducer }

func (*silentProducer) SendAsync(sdk.Record, func(sdk.Ack, error)) error { return nil }

func (*silentProducer) Flush(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

type silentClient struct{ *fakeClient }

func (silentClient) NewProducer(string, ...sdk.ProducerOption) (Producer, error) {
	return &silentProducer{}, nil
}

func TestPublishEndsWithItsTime(t *testing.T) {
	for name, in := range map[string]io.Reader{"short input": strings.NewReader("a\nb\n"), "endless input": endless{}} {
		synctest.Test(t, func(t *testing.T) {
			streams, _, _, errs := term.Test()
			streams.In = in
			s := NewSession(Deps{IO: streams, Getenv: env(""), Connect: func(Target) (Client, error) {
				return silentClient{&fakeClient{admin: &fakeAdmin{topics: topicsOf("t")}}}, nil
			}})
			start := time.Now()
			err := s.execute(t.Context(), streams, []string{"publish", "t", "-t", "3", "--rate", "100/s"})
			if took := time.Since(start); ExitCode(err) != ExitUnknownOutcome || took > 3*time.Second+blockedSend || !strings.Contains(errs.String(), "before every record was answered") {
				t.Errorf("%s: exit %d after %s\n%s", name, ExitCode(err), took, errs)
			}
		})
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "a\n"), nil }

// batchedProducer sends each record as a batch of its own.
type batchedProducer struct{ fakeProducer }

func (p *batchedProducer) Stats() sdk.ProducerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sdk.ProducerStats{Batches: uint64(len(p.sent))}
}

type batchedClient struct{ p *batchedProducer }

func (c batchedClient) NewProducer(string, ...sdk.ProducerOption) (Producer, error) { return c.p, nil }

func TestBenchCountsBatchesAfterTheWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &batchedProducer{}
		plan := benchPlan{topic: "t", rate: 100, duration: 2 * time.Second, warmup: time.Second, clients: 1, payload: payload{size: 1, block: []byte("x"), fixed: true}}
		l, err := newLoad(plan, batchedClient{p}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if r := l.report(l.totals(), startCPU(), nil); r.Records == 0 || r.Batches != r.Records || r.BatchRecords != 1 || len(p.sent) <= int(r.Records) {
			t.Errorf("%d records in %d batches of %v, %d with the warm-up", r.Records, r.Batches, r.BatchRecords, len(p.sent))
		}
	})
}
