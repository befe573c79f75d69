package app

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// job is eg-top as a job of a shell.
type job struct {
	*child
	dir string
	pid int
}

func startJob(t *testing.T, args string) *job {
	j := &job{child: onTerminal(t, "well", 100, 30, "/bin/sh", "-i"), dir: t.TempDir()}
	j.until("ready>")
	j.send(fmt.Sprintf("stty -g >%s/before; %s %s\r", j.dir, os.Args[0], args))
	j.until("[1 Overview]")
	j.until("n5")
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", j.cmd.Process.Pid, j.cmd.Process.Pid))
	require.NoError(t, err)
	j.pid, err = strconv.Atoi(strings.Fields(string(children))[0])
	require.NoError(t, err)
	return j
}

// atPrompt waits for the shell, and checks that the terminal is as it was when eg-top began. what is for the shell to say.
func (j *job) atPrompt(what string) {
	j.t.Helper()
	_ = os.Remove(j.dir + "/after")
	j.send(fmt.Sprintf("stty -g >%s/after; echo %s\\-again\r", j.dir, what))
	j.until(what + "-again")
	before, err := os.ReadFile(j.dir + "/before")
	require.NoError(j.t, err)
	after, err := os.ReadFile(j.dir + "/after")
	require.NoError(j.t, err)
	require.Equal(j.t, string(before), string(after), "the line settings")
	j.modesAreOff()
}

// state waits for the process to be in a state of proc(5).
func (j *job) state(want string) {
	j.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", j.pid))
		if want == "Z" && err != nil {
			return // the shell has seen it
		}
		require.NoError(j.t, err)
		if strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0] == want {
			return
		}
		require.True(j.t, time.Now().Before(deadline), "its state is not %s:\n%s", want, j.text())
	}
}

func (j *job) stopped() { j.state("T") }

// leave ends eg-top, and then the shell.
func (j *job) leave() {
	j.t.Helper()
	j.send("q")
	j.until("ended with 0")
	j.atPrompt("left")
	j.send("exit\r")
	j.end(0)
}

func (j *job) signal(s syscall.Signal) { require.NoError(j.t, syscall.Kill(j.pid, s)) }

func TestSuspendAndResume(t *testing.T) {
	for _, how := range []struct {
		name string
		stop func(*job)
	}{
		{"ctrl-z", func(j *job) { j.send("\x1a") }},
		{"SIGTSTP", func(j *job) { j.signal(syscall.SIGTSTP) }},
	} {
		for _, args := range []string{"", "--no-mouse"} {
			t.Run(how.name+args, func(t *testing.T) {
				t.Parallel()
				j := startJob(t, args)
				for round := range 2 {
					how.stop(j)
					j.stopped()
					j.atPrompt(fmt.Sprintf("stopped-%d", round))
					j.send("fg; echo ended with $?\r")
					j.until("[1 Overview]")
					j.send("2")
					j.until("[2 Ring]")
					j.send("1")
					j.until("[1 Overview]")
				}
				j.leave()
			})
		}
	}
}

// A program that is stopped without a word cannot give the terminal back, but takes it again.
func TestResumeAfterSIGSTOP(t *testing.T) {
	t.Parallel()
	j := startJob(t, "")
	j.signal(syscall.SIGSTOP)
	j.stopped()
	j.send("stty sane; printf '\\033[2J\\033[H%s' cleaned\\-up\n")
	j.until("cleaned-up")
	j.send("fg; echo ended with $?\r")
	j.until("[1 Overview]")
	j.leave()
}

// In the background nothing is drawn, and whoever ends the job there finds the terminal as it is.
func TestEndInTheBackground(t *testing.T) {
	for name, background := range map[string]bool{"stopped": false, "in the background": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startJob(t, "")
			j.send("\x1a")
			j.stopped()
			if background {
				j.send("bg\r")
			}
			j.atPrompt("put-away")
			_, raw := j.written()
			j.signal(syscall.SIGTERM)
			j.signal(syscall.SIGCONT)
			j.state("Z")
			ask := "fg" // to a shell a stopped job is one until it has waited for it
			if background {
				ask = "wait %1"
			}
			j.send(ask + "; echo ended with $?\r")
			j.until("ended with 143")
			j.atPrompt("ended")
			_, after := j.written()
			require.NotContains(t, after[len(raw):], "?1049h")
			j.send("exit\r")
			j.end(0)
		})
	}
}

// The first program of a terminal has no shell to go back to.
func TestNobodyToGoBackTo(t *testing.T) {
	t.Parallel()
	c := startChild(t, "well", 100, 30)
	c.until("n5")
	c.send("\x1a")
	c.until("there is no shell to go back to")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTSTP))
	c.send("2")
	c.until("[2 Ring]")
	c.send("q")
	c.end(0)
}
