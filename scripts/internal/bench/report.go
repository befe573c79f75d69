package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report collects the rows of the table.
type report struct {
	options options
	rows    []*row
}

type row struct {
	what, value, relative, wanted, verdict string
}

// add makes a row of one figure.
func (r *report) add(what, format string, value float64, relative string) *row {
	row := &row{what: what, value: fmt.Sprintf(format, value), relative: relative}
	r.rows = append(r.rows, row)
	fmt.Fprintf(os.Stderr, "  %-36s %s  %s\n", what, row.value, relative)
	return row
}

// goal says what the row must reach, and whether it did.
func (w *row) goal(text string, met bool) {
	w.wanted, w.verdict = text, "missed"
	if met {
		w.verdict = "met"
	}
}

// table prints the rows as Markdown, under what they were measured with.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`bash scripts/bench.sh`, commit %s, %s, %s, %d cores, kernel %s, file system %s.\n",
		r.options.commit, time.Now().UTC().Format("2006-01-02"), processor(), runtime.NumCPU(), kernel(), fileSystem(r.options.dir))
	fmt.Fprintf(&b, "Medians of %d adjacent pairs of %v each; broker and client on the same cores, default settings (the cache apart, in the rows that name it), codec none, random payload, every ack fsynced.\n\n", r.options.rounds, r.options.period)
	b.WriteString("| what | measured | beside the floor | goal | |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.what, row.value, row.relative, row.wanted, row.verdict)
	}
	return b.String()
}

// The table stands between these lines of docs/PERFORMANCE.md.
const (
	beginMark = "<!-- bench.sh writes from here -->"
	endMark   = "<!-- to here -->"
)

func (r *report) update(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s lacks the lines %q and %q", file, beginMark, endMark)
	}
	return os.WriteFile(file, fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, beginMark, r.table(), endMark, after), 0o644)
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// fileSystem is the type of the longest mount point above dir.
func fileSystem(dir string) string {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	best, kind := "", "unknown"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 2 && len(fields[1]) >= len(best) && strings.HasPrefix(dir+"/", strings.TrimSuffix(fields[1], "/")+"/") {
			best, kind = fields[1], fields[2]
		}
	}
	return kind
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
