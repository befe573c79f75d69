package vfs_test

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/eastguard/eastguard/internal/vfs"
)

// TestCrashScript runs testdata/crash.txt: each stanza is a list of commands, one a line. A crash or a kill goes on
// with what it left. The output is what the last command prints, after the name of a crash or kill in the stanza.
func TestCrashScript(t *testing.T) {
	s := &script{m: vfs.NewMem(), rng: rand.New(rand.NewSource(1))}
	datadriven.RunTest(t, "testdata/crash.txt", func(t *testing.T, d *datadriven.TestData) string {
		lines := append([]string{header(d)}, strings.Split(strings.TrimSpace(d.Input), "\n")...)
		prefix, out := "", "ok"
		for _, line := range lines {
			words := strings.SplitN(strings.TrimSpace(line), " ", 3)
			if words[0] == "" {
				continue
			}
			if words[0] == "crash" || words[0] == "kill" {
				prefix = words[0] + ": "
			}
			result, err := s.run(words)
			if err != nil {
				return fmt.Sprintf("%s%s: %v", prefix, line, err)
			}
			if result != "" {
				out = result
			}
		}
		return prefix + out + "\n"
	})
}

// header is the stanza's first line as it was written.
func header(d *datadriven.TestData) string {
	line := d.Cmd
	for _, a := range d.CmdArgs {
		line += " " + a.String()
	}
	return line
}

type script struct {
	m   *vfs.Mem
	rng *rand.Rand
}

// run does one command and returns what it prints.
func (s *script) run(w []string) (string, error) {
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(arg(i), 10, 64)
		return n
	}
	switch w[0] {
	case "mkdir":
		return "", s.m.MkdirAll(arg(1), 0o700)
	case "write":
		return "", s.edit(arg(1), func(f vfs.File) error { return write(f, arg(2), 0) })
	case "append":
		return "", s.edit(arg(1), func(f vfs.File) error {
			size, err := f.Size()
			if err != nil {
				return err
			}
			return write(f, arg(2), size)
		})
	case "sync":
		return "", s.edit(arg(1), vfs.File.Sync)
	case "truncate":
		return "", s.edit(arg(1), func(f vfs.File) error { return f.Truncate(number(2)) })
	case "preallocate":
		return "", s.edit(arg(1), func(f vfs.File) error { return f.Preallocate(0, number(2)) })
	case "writeatomic":
		return "", vfs.WriteFileAtomic(s.m, arg(1), []byte(arg(2)), 0o600)
	case "rename":
		return "", s.m.Rename(arg(1), arg(2))
	case "remove":
		return "", s.m.Remove(arg(1))
	case "syncdir":
		return "", s.m.SyncDir(arg(1))
	case "syncfs":
		return "", s.m.SyncFS("/")
	case "crash":
		s.m = s.m.CrashClone(s.rng, float64(number(1)))
		return "", nil
	case "kill":
		s.m = s.m.Snapshot()
		return "", nil
	case "read":
		data, err := vfs.ReadFile(s.m, arg(1))
		return fmt.Sprintf("%s = %q", arg(1), data), err
	case "ls":
		return s.list(arg(1))
	}
	return "", fmt.Errorf("unknown command %q", w[0])
}

func (s *script) list(dir string) (string, error) {
	entries, err := s.m.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return dir + " is empty", err
	}
	out := dir + " holds"
	for _, e := range entries {
		out += " " + e.Name
	}
	return out, nil
}

func (s *script) edit(name string, change func(vfs.File) error) error {
	f, err := s.m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	return f.Close()
}

func write(f vfs.File, text string, off int64) error {
	_, err := f.WriteAt([]byte(text), off)
	return err
}
