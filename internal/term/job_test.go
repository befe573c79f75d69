package term

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// jobMode says that this test binary is to be a program that somebody starts, and who: it tells what it finds.
const jobMode = "EG_TERM_TEST_JOB"

func TestMain(m *testing.M) {
	switch os.Getenv(jobMode) {
	case "":
		os.Exit(m.Run())
	case "shell": // leads a session, and starts a job in a group of its own
		_, _ = os.Stdout.Write(runJob("alone", &syscall.SysProcAttr{Setpgid: true}))
	case "alone":
		if HasShell() {
			_, _ = os.Stdout.WriteString("shell")
		} else {
			_, _ = os.Stdout.WriteString("none")
		}
	}
}

func runJob(mode string, how *syscall.SysProcAttr) []byte {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobMode+"="+mode)
	cmd.SysProcAttr = how
	out, err := cmd.Output()
	if err != nil {
		return []byte(err.Error())
	}
	return out
}

func TestHasShell(t *testing.T) {
	for mode, want := range map[string]string{"shell": "shell", "alone": "none"} {
		if got := string(runJob(mode, &syscall.SysProcAttr{Setsid: true})); got != want {
			t.Errorf("started as %s: %s, want %s", mode, got, want)
		}
	}
}

func TestInForeground(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if !InForeground(r) {
		t.Error("a pipe is nobody's else")
	}
	ptm, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptm.Close()
	defer tty.Close()
	if !InForeground(ptm) {
		t.Error("a terminal that controls nobody is nobody's else")
	}
	cmd := exec.Command("cat")
	cmd.Stdin = tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if InForeground(ptm) {
		t.Error("the terminal is another's")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}
