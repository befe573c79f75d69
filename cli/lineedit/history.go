package lineedit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// historyLimit is how many lines are kept, in memory and on disk.
const historyLimit = 5000

// history is the lines of this session and of those before it. The file is shared with other sessions: each line
// is appended by one write under a lock, and the file is shortened by a rename under the same lock, so that
// nobody's lines are lost. Without a usable file it is memory only; a prompt must not fail for its history.
type history struct {
	mu    sync.Mutex
	path  string
	lines []string
}

func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.path = ""
		return h
	}
	_ = h.locked(h.load)
	return h
}

// locked runs f while no other session writes the file.
func (h *history) locked(f func() error) error {
	lock := flock.New(h.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		// A home that cannot be written to: the lines of before may still be readable.
		h.readOnly()
		return err
	}
	defer lock.Unlock()
	return f()
}

func (h *history) readOnly() {
	if b, err := os.ReadFile(h.path); err == nil {
		h.lines = fold(b)
	}
	h.path = ""
}

// load reads the file, creating it with mode 0600, and shortens it when it has grown to twice what is kept.
func (h *history) load() error {
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		h.readOnly()
		return err
	}
	if err := f.Chmod(0o600); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	b, err := os.ReadFile(h.path)
	if err != nil {
		return err
	}
	h.lines = fold(b)
	if bytes.Count(b, []byte("\n")) <= 2*historyLimit {
		return nil
	}
	return renameio.WriteFile(h.path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
}

// fold keeps the last of equal lines, and the last historyLimit of all.
func fold(file []byte) []string {
	var lines []string
	seen := map[string]bool{}
	all := strings.Split(string(file), "\n")
	for _, line := range slices.Backward(all) {
		if line = strings.TrimSpace(line); line == "" || seen[line] {
			continue
		}
		seen[line] = true
		if lines = append(lines, line); len(lines) == historyLimit {
			break
		}
	}
	slices.Reverse(lines)
	return lines
}

// add remembers a line, unless it is the last one again. It must be one line: newlines become blanks.
func (h *history) add(line string) {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\n", " "))
	h.mu.Lock()
	defer h.mu.Unlock()
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > historyLimit {
		h.lines = slices.Delete(h.lines, 0, len(h.lines)-historyLimit)
	}
	if h.path == "" {
		return
	}
	_ = h.locked(func() error { return appendLine(h.path, line) })
}

// appendLine opens the file each time: another session may have replaced it.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (h *history) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}
