package procs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is a place for a broker: a directory, and ports.
type Node struct {
	Name                         string
	Dir                          string
	Client, Peers, Data, Control string // addresses: client, cluster, data and admin port

	args  []string
	start func(args ...string) *exec.Cmd
	proc  *process // nil while nothing runs
}

// process is one start of a broker.
type process struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it said that it serves
	done  chan struct{} // closed when it has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// Start starts a broker and returns at once.
func (n *Node) Start() error {
	if n.proc != nil {
		return fmt.Errorf("%s runs already", n.Name)
	}
	cmd := n.start(n.args...)
	cmd.Dir = n.Dir
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, ready: make(chan struct{}), done: make(chan struct{})}
	go p.watch(out)
	n.proc = p
	return nil
}

// watch keeps what the process says, sees the line that it is ready, and waits for its end.
func (p *process) watch(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	served := false
	for lines.Scan() {
		p.mu.Lock()
		p.log.Write(append(lines.Bytes(), '\n'))
		p.mu.Unlock()
		var line struct {
			Msg string `json:"msg"`
		}
		if !served && json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			served = true
			close(p.ready)
		}
	}
	_ = p.cmd.Wait() // how it ended is asked for by whoever cares
	close(p.done)
}

// Ready waits until the broker says that it serves.
func (n *Node) Ready(within time.Duration) error {
	p := n.proc
	if p == nil {
		return fmt.Errorf("%s does not run", n.Name)
	}
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return fmt.Errorf("%s ended before it was ready:\n%s", n.Name, n.Log(40))
	case <-time.After(within):
		return fmt.Errorf("%s is not ready within %v:\n%s", n.Name, within, n.Log(40))
	}
}

// Running reports whether a process was started and has not been ended by this package.
func (n *Node) Running() bool { return n.proc != nil }

// Signal sends a signal: SIGSTOP, SIGCONT.
func (n *Node) Signal(sig syscall.Signal) error {
	if n.proc == nil {
		return fmt.Errorf("%s does not run", n.Name)
	}
	return n.proc.cmd.Process.Signal(sig)
}

// Pid is the process that runs; 0 while none does.
func (n *Node) Pid() int {
	if n.proc == nil {
		return 0
	}
	return n.proc.cmd.Process.Pid
}

// Exited waits until the broker has ended by itself, and returns its exit code.
func (n *Node) Exited(within time.Duration) (code int, err error) {
	p := n.proc
	if p == nil {
		return 0, fmt.Errorf("%s does not run", n.Name)
	}
	select {
	case <-p.done:
		n.proc = nil
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("%s has not ended within %v:\n%s", n.Name, within, p.tail(40))
	}
}

// Kill ends the broker by kill -9.
func (n *Node) Kill() error {
	_, err := n.end(syscall.SIGKILL, time.Minute)
	return err
}

// Stop ends the broker in good order. An exit code other than 0 is an error.
func (n *Node) Stop(within time.Duration) error {
	p := n.proc
	code, err := n.end(syscall.SIGTERM, within)
	if err == nil && code != 0 {
		return fmt.Errorf("%s ended with code %d:\n%s", n.Name, code, p.tail(40))
	}
	return err
}

func (n *Node) end(sig syscall.Signal, within time.Duration) (code int, err error) {
	p := n.proc
	if err := n.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	select {
	case <-p.done:
		n.proc = nil
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("%s does not end within %v:\n%s", n.Name, within, p.tail(40))
	}
}

// Log is the last of what the broker said.
func (n *Node) Log(lines int) string {
	if n.proc == nil {
		return ""
	}
	return n.proc.tail(lines)
}

// Said is everything that the node's last process said.
func (n *Node) Said() string { return n.Log(math.MaxInt) }

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.log.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Usage is what a broker costs.
type Usage struct {
	CPU time.Duration // used since its start
	RSS int64
}

// Usage reads the broker's processor time and memory.
func (n *Node) Usage() (u Usage, err error) {
	if n.proc == nil {
		return u, fmt.Errorf("%s does not run", n.Name)
	}
	dir := filepath.Join("/proc", strconv.Itoa(n.proc.cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return u, err
			}
			u.RSS = kib << 10
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	// The command's name, in parentheses, may hold anything; utime and stime are the 12th and 13th after it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, text := range fields[11:13] {
		ticks, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	return u, nil
}

const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
