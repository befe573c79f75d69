package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// TestOrderCheck tells one key's story in words: a digit is a delivery, "f3" the failure of record 3. Five records
// are sent and, unless they failed, acked.
func TestOrderCheck(t *testing.T) {
	tests := map[string]struct {
		story                             string
		lost, duplicates, reordered, seen int64
	}{
		"in order":              {"0 1 2 3 4", 0, 0, 0, 5},
		"nothing came":          {"", 5, 0, 0, 0},
		"the last is missing":   {"0 1 2 3", 1, 0, 0, 4},
		"a hole":                {"0 1 3 4", 1, 0, 0, 4},
		"swapped":               {"0 2 1 3 4", 0, 0, 1, 5},
		"late":                  {"1 2 3 4 0", 0, 0, 1, 5},
		"backwards":             {"4 3 2 1 0", 0, 0, 4, 5},
		"twice":                 {"0 1 1 2 3 4", 0, 1, 0, 5},
		"all again":             {"0 1 2 3 4 0 1 2 3 4", 0, 5, 0, 5},
		"late, then twice":      {"0 2 1 1 3 4", 0, 1, 1, 5},
		"failed and absent":     {"f2 0 1 3 4", 0, 0, 0, 4},
		"failed and there":      {"f2 0 1 2 3 4", 0, 0, 0, 5},
		"the last failed":       {"f4 0 1 2 3", 0, 0, 0, 4},
		"lost beside a failure": {"f2 0 3 4", 1, 0, 0, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newOrderCheck(base.UUID{1})
			failed := map[byte]bool{}
			for _, w := range strings.Fields(tt.story) {
				if w[0] == 'f' {
					failed[w[1]-'0'] = true
				}
			}
			marks := make([]mark, 5)
			for i := range marks {
				marks[i] = c.assign(7)
				var err error
				if failed[byte(i)] {
					err = errors.New("failed")
				}
				c.settle(marks[i], err)
			}
			for _, w := range strings.Fields(tt.story) {
				if w[0] != 'f' {
					c.deliver(marks[w[0]-'0'])
				}
			}
			n := c.counts()
			if c.lost() != tt.lost || n.duplicates != tt.duplicates || n.reordered != tt.reordered || n.delivered != tt.seen {
				t.Errorf("lost %d dup %d reordered %d delivered %d", c.lost(), n.duplicates, n.reordered, n.delivered)
			}
		})
	}
}

func TestMarkRoundTrip(t *testing.T) {
	m := mark{run: base.UUID{1, 2, 3}, key: 77, seq: 1 << 40}
	b := make([]byte, markSize)
	m.put(b)
	if got, ok := readMark(b); !ok || got != m {
		t.Errorf("%+v came back as %+v", m, got)
	}
	if _, ok := readMark(b[:markSize-1]); ok {
		t.Error("a mark in too few bytes")
	}
}

func TestPayloadIsOfItsSize(t *testing.T) {
	p, err := newPayload("100", "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for n := range uint64(1000) {
		v := p.value(n)
		if len(v) != 100 || cap(v) != 100 {
			t.Fatalf("value %d has %d bytes, room for %d", n, len(v), cap(v))
		}
		seen[string(v)] = true
	}
	if len(seen) < 990 {
		t.Errorf("only %d of 1000 values differ", len(seen))
	}
}

func TestShareAddsUp(t *testing.T) {
	for _, total := range []int64{0, 1, 7, 100} {
		for n := 1; n < 9; n++ {
			var sum int64
			for i := range n {
				sum += share(total, n, i)
			}
			if sum != total {
				t.Errorf("%d among %d gives %d", total, n, sum)
			}
		}
	}
}

func TestPacerSpreadsEvenly(t *testing.T) {
	p := newPacer(1000, testNow)
	for range 999 {
		p.due()
	}
	if got := p.due().Sub(testNow); got != 999*time.Millisecond {
		t.Errorf("the 1000th of 1000/s is due after %v", got)
	}
}

func TestGate(t *testing.T) {
	tests := map[string]struct {
		gate gate
		miss string
	}{
		"none":             {gate{}, ""},
		"fast enough":      {gate{minRate: 900, maxP99: 20 * time.Millisecond}, ""},
		"too slow":         {gate{minRate: 1100}, "1000 records/s, at least 1100 wanted"},
		"too late":         {gate{maxP99: 5 * time.Millisecond}, "p99 10 ms, at most 5.0 ms wanted"},
		"as before":        {gate{base: &baseReport{Rate: 1040, P99: 9600}, maxRegress: 0.05}, ""},
		"slower":           {gate{base: &baseReport{Rate: 1100, P99: 20000}, maxRegress: 0.05}, "9.1% below the 1100 of before"},
		"later":            {gate{base: &baseReport{Rate: 900, P99: 8000}, maxRegress: 0.05}, "25.0% above the 8.0 ms of before"},
		"better is no sin": {gate{base: &baseReport{Rate: 10, P99: 1 << 30}, maxRegress: 0}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.gate.judge(1000, 10*time.Millisecond)
			if tt.miss == "" && err != nil || tt.miss != "" && (ExitCode(err) != ExitNotMet || !strings.Contains(err.Error(), tt.miss)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBenchProduceReport(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "r.json")
	fail := func(n int, _ sdk.Record) error { return nil }
	out, errs, err := run(t, &fakeClient{producer: &fakeProducer{fail: fail}}, "", false, nil,
		"bench", "produce", "t", "--records", "500", "--max", "--size", "100", "--keys", "10", "--report", report, "-o", "json")
	if err != nil {
		t.Fatal(err, errs)
	}
	var doc, saved produceReport
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Records != 500 || doc.Bytes != 500*101 || doc.RecordsPerSec <= 0 || doc.P50 <= 0 || doc.Errors != 0 || doc.Ranges != 1 {
		t.Errorf("%s", out)
	}
	b, err := os.ReadFile(report)
	if err != nil || json.Unmarshal(b, &saved) != nil || !reflect.DeepEqual(saved, doc) {
		t.Errorf("the report in the file is another: %v", err)
	}
}

func TestBenchProduceFailures(t *testing.T) {
	half := func() func(int, sdk.Record) error {
		n := 0
		return func(int, sdk.Record) error {
			if n++; n%2 == 0 {
				return errorf(sdk.CodeBusy, "busy").WithOutcome(sdk.OutcomeUnknown)
			}
			return nil
		}
	}
	out, errs, err := run(t, &fakeClient{producer: &fakeProducer{fail: half()}}, "", false, nil, "bench", "produce", "t", "--records", "100", "--max", "-o", "json")
	var doc produceReport
	if jerr := json.Unmarshal([]byte(out), &doc); jerr != nil || ExitCode(err) != ExitPartial || doc.Errors != 50 || doc.Unknown != 50 || doc.Records != 50 {
		t.Errorf("exit %d, %s%s", ExitCode(err), out, errs)
	}
	all := func(int, sdk.Record) error { return errorf(sdk.CodeTopicNotFound, "topic not found") }
	if _, _, err := run(t, &fakeClient{producer: &fakeProducer{fail: all}}, "", false, nil, "bench", "produce", "x", "--records", "10", "--max"); ExitCode(err) != ExitNotFound {
		t.Errorf("nothing was acked: exit %d", ExitCode(err))
	}
}
