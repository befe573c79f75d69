// Command tally reads the output of `go test -json`, shows what failed and one line a package, and counts.
//
//	go test -json ./... | tally -counts FILE
//
// FILE gets "passed failed skipped". A test with subtests counts as its subtests do; a package that cannot
// be built, or crashes, counts as one failure. The exit code is 1 when anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type counts struct{ passed, failed, skipped int }

func main() {
	file := flag.String("counts", "", "file that gets the three counts")
	flag.Parse()
	c, err := tally(os.Stdin, os.Stdout)
	if err == nil && *file != "" {
		err = os.WriteFile(*file, fmt.Appendf(nil, "%d %d %d\n", c.passed, c.failed, c.skipped), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

// tally counts the leaves of the tree of tests: a test that ran others is only their sum, unless it failed by itself.
func tally(in io.Reader, out io.Writer) (counts, error) {
	var c counts
	output := make(map[string][]string) // by package and test, until it has passed
	parents := make(map[string]bool)
	childFailed := make(map[string]bool)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // the build's own messages
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "run":
			if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
				parents[e.Package+" "+e.Test[:i]] = true
			}
		case "output":
			output[key] = append(output[key], e.Output)
		case "build-output": // followed by the failure of the packages that needed it
			fmt.Fprint(out, e.Output)
		case "pass", "fail", "skip":
			c.finish(e, key, output, parents[key], childFailed, out)
			delete(output, key)
		}
	}
	return c, lines.Err()
}

func (c *counts) finish(e event, key string, output map[string][]string, parent bool, childFailed map[string]bool, out io.Writer) {
	if e.Action == "fail" {
		for _, line := range output[key] {
			if !strings.HasPrefix(line, "FAIL") { // go test's own verdicts, which are given below
				fmt.Fprint(out, line)
			}
		}
		for name := e.Test; name != ""; {
			childFailed[e.Package+" "+name] = childFailed[e.Package+" "+name] || name != e.Test
			i := strings.LastIndexByte(name, '/')
			name = name[:max(i, 0)]
		}
	}
	if e.Test == "" {
		c.finishPackage(e, childFailed, out)
		return
	}
	childFailed[e.Package+" "] = childFailed[e.Package+" "] || e.Action == "fail"
	if parent && (e.Action != "fail" || childFailed[key]) {
		return
	}
	switch e.Action {
	case "pass":
		c.passed++
	case "fail":
		c.failed++
	case "skip":
		c.skipped++
		fmt.Fprintf(out, "SKIP  %s %s: %s\n", e.Package, e.Test, reason(output[key]))
	}
}

// finishPackage prints a package's line. A package that failed although none of its tests did has crashed, run
// out of time or never been built.
func (c *counts) finishPackage(e event, childFailed map[string]bool, out io.Writer) {
	word := map[string]string{"pass": "ok", "fail": "FAIL", "skip": "none"}[e.Action]
	if e.Action == "fail" && !childFailed[e.Package+" "] {
		c.failed++
	}
	if e.Action != "skip" {
		fmt.Fprintf(out, "%-5s %s  %.1fs\n", word, e.Package, e.Elapsed)
	}
}

// reason is the line with which a test skipped itself.
func reason(output []string) string {
	for _, line := range output {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
