package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/eastguard/eastguard/internal/term"
)

// latencies is one client's histogram, in microseconds up to ten minutes, three digits. It is not safe for
// concurrent use; each client locks its own, and they are merged at the end.
type latencies struct{ h *hdrhistogram.Histogram }

const maxLatencyUs = int64(10 * time.Minute / time.Microsecond)

func newLatencies() latencies { return latencies{hdrhistogram.New(1, maxLatencyUs, 3)} }

func (l latencies) record(d time.Duration) {
	// The value is clamped into the histogram's bounds, so recording cannot fail.
	_ = l.h.RecordValue(min(max(d.Microseconds(), 1), maxLatencyUs))
}

func (l latencies) merge(o latencies) { l.h.Merge(o.h) }

// percentiles are the latencies of a report.
type percentiles struct {
	P50  int64 `json:"p50_us"`
	P90  int64 `json:"p90_us"`
	P99  int64 `json:"p99_us"`
	P999 int64 `json:"p999_us"`
	Max  int64 `json:"max_us"`
}

func (l latencies) percentiles() percentiles {
	if l.h.TotalCount() == 0 {
		return percentiles{}
	}
	at := func(q float64) int64 { return l.h.ValueAtQuantile(q) }
	return percentiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: l.h.Max()}
}

func (p percentiles) text() string {
	us := func(n int64) string { return term.FormatTook(time.Duration(n) * time.Microsecond) }
	return fmt.Sprintf("p50 %s  p90 %s  p99 %s  p99.9 %s  max %s", us(p.P50), us(p.P90), us(p.P99), us(p.P999), us(p.Max))
}

// baseReport is what --compare needs of an earlier report.
type baseReport struct {
	Rate float64 `json:"records_per_sec"`
	P99  int64   `json:"p99_us"`
}

func readBaseReport(path string) (*baseReport, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--compare: %v", err)
	}
	var r baseReport
	if err := json.Unmarshal(b, &r); err != nil || r.Rate <= 0 {
		return nil, usagef("--compare: %s is not a report of bench", path)
	}
	return &r, nil
}

// save writes --report and --hdr.
func (g gate) save(report any, l latencies) error {
	if g.report != "" {
		b, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Clean(g.report), append(b, '\n'), 0o644); err != nil {
			return usagef("--report: %v", err)
		}
	}
	if g.hdr == "" {
		return nil
	}
	f, err := os.Create(filepath.Clean(g.hdr))
	if err != nil {
		return usagef("--hdr: %v", err)
	}
	_, err = l.h.PercentilesPrint(f, 5, 1000)
	return firstError(err, f.Close())
}

// cpuClock measures the processor time of this process.
type cpuClock struct {
	wall time.Time
	used time.Duration
}

func startCPU() cpuClock { return cpuClock{time.Now(), cpuUsed()} }

// percent is the share of one core used since the start.
func (c cpuClock) percent() float64 {
	wall := time.Since(c.wall)
	if wall <= 0 {
		return 0
	}
	return 100 * float64(cpuUsed()-c.used) / float64(wall)
}

func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
