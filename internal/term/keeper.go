package term

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// keeperEnv makes a process a keeper, and tells it what it keeps.
const keeperEnv = "EASTGUARD_TERMINAL_KEEPER"

// keeperName is what ps(1) says of it.
const keeperName = "eg-top-keeper"

// keeperTime is how long a keeper takes at most, once the program has died: a terminal that takes nothing any more must not
// hold a process.
const keeperTime = 10 * time.Second

// Keeper is a second process, which puts a terminal back as it was should this one die with the terminal in its hands: of a
// panic in a goroutine that nobody guards, of an error that the Go runtime calls fatal, or of SIGKILL. Nothing in a process
// can do that for itself. A process that ends in good order puts its terminal back and dismisses the keeper.
//
// The keeper waits on a socket that only this process holds, and to which the runtime writes what it says of a crash
// (debug.SetCrashOutput). The socket takes next to nothing that is not read: so the terminal is as it was before the
// process is gone, and before a shell has it. Meanwhile stderr, if it is the terminal, leads into memory, which the keeper
// prints, for what is written to a screen is lost with it. After SIGKILL there are no words and no waiting: a shell may have
// the terminal already, and then gets the settings only if it has not made its own of them.
type Keeper struct {
	cmd    *exec.Cmd
	socket *os.File
	said   *os.File // what was written to stderr, in memory; nil when stderr is no terminal
	stderr int      // where that leads otherwise
	once   sync.Once
}

// kept is what the keeper is told.
type kept struct {
	Group    int // of the program's processes
	Settings unix.Termios
	Leave    string // what puts the modes of the terminal back
}

// The keeper's files beside the standard ones.
const (
	keeperSocket = 3 + iota
	keeperSaid
)

// Keep starts a keeper of the terminal that in and out are, as it is now. leave is what to write to put back the modes that
// the program will set. The program's main must begin with [RunKeeper].
func Keep(in, out *os.File, leave string) (*Keeper, error) {
	settings, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(kept{unix.Getpgrp(), *settings, leave})
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	k := &Keeper{socket: ours}
	k.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{keeperName}, Env: []string{keeperEnv + "=" + string(told)},
		Stdin: in, Stdout: out, Stderr: os.Stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // what stops or ends the program's group is not meant for it
	}
	if err := k.begin(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return k, nil
}

// socketPair is a pair of which the first end takes hardly anything that the other does not read.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs = os.NewFile(uintptr(pair[0]), "keeper"), os.NewFile(uintptr(pair[1]), "keeper")
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1); err != nil { // the kernel takes its least
		_, _ = ours.Close(), theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// begin starts the process, and turns stderr away from the terminal.
func (k *Keeper) begin() error {
	if xterm.IsTerminal(syscall.Stderr) {
		fd, err := unix.MemfdCreate("stderr", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		k.said = os.NewFile(uintptr(fd), "stderr")
		k.cmd.ExtraFiles = append(k.cmd.ExtraFiles, k.said)
	}
	if err := k.cmd.Start(); err != nil {
		k.forget()
		return err
	}
	err := debug.SetCrashOutput(k.socket, debug.CrashOptions{})
	if err == nil && k.said != nil {
		k.stderr, err = unix.FcntlInt(uintptr(syscall.Stderr), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.Dup3(int(k.said.Fd()), syscall.Stderr, 0)
		}
	}
	if err != nil {
		k.Dismiss()
	}
	return err
}

func (k *Keeper) forget() {
	if k.said != nil {
		_ = k.said.Close()
		k.said = nil
	}
}

// Dismiss ends the keeper: the terminal is as it was. What was written to stderr meanwhile is written now. The nil Keeper
// has nothing to end.
func (k *Keeper) Dismiss() {
	if k == nil {
		return
	}
	k.once.Do(func() {
		// What cannot be closed or killed is gone already.
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		_ = k.socket.Close()
		if k.stderr > 0 {
			_ = unix.Dup3(k.stderr, syscall.Stderr, 0)
			_ = unix.Close(k.stderr)
			printFrom(k.said, 0)
		}
		k.forget()
	})
}

// RunKeeper is what main begins with in a program that calls [Keep]. It reports true when this process was a keeper, which
// has done its work.
func RunKeeper() bool {
	told, is := os.LookupEnv(keeperEnv)
	if !is {
		return false
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte(keeperName), 0) // whoever looks for the program by its name finds one
	var k kept
	if json.Unmarshal([]byte(told), &k) == nil {
		k.watch()
	}
	return true
}

// watch returns when the program has died and the terminal is as it was.
func (k *kept) watch() {
	socket, said := os.NewFile(keeperSocket, "keeper"), os.NewFile(keeperSaid, "stderr")
	buf := make([]byte, 512)
	_, err := socket.Read(buf) // as long as the program lives
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.restore()
		at := printFrom(said, 0)
		for err == nil {
			_, err = socket.Read(buf)
			at = printFrom(said, at)
		}
	}()
	select {
	case <-done:
	case <-time.After(keeperTime):
	}
}

// restore puts the terminal back, unless another program than the shell has it.
func (k *kept) restore() {
	group, err := unix.IoctlGetInt(syscall.Stdin, unix.TIOCGPGRP)
	late := err == nil && group != k.Group
	if shell, err := shellGroup(); late && (err != nil || group != shell) {
		return
	}
	// There is nobody to tell of a terminal that has gone away. One that takes nothing has its settings at least.
	if !late || stillRaw() {
		_ = unix.IoctlSetTermios(syscall.Stdin, unix.TCSETS, &k.Settings)
	}
	_, _ = io.WriteString(os.Stdout, k.Leave)
}

// stillRaw reports whether the terminal is as a screen leaves it: a shell that edits lines keeps Ctrl-C a signal.
func stillRaw() bool {
	s, err := unix.IoctlGetTermios(syscall.Stdin, unix.TCGETS)
	return err == nil && s.Lflag&(unix.ICANON|unix.ISIG) == 0
}

// printFrom prints what a file has from an offset on to stderr, and returns where it ends.
func printFrom(f *os.File, at int64) int64 {
	n, _ := io.Copy(os.Stderr, io.NewSectionReader(f, at, 1<<30)) // stderr is where errors would be told
	return at + n
}
