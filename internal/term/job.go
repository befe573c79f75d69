package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// InForeground reports whether tty is this program's to draw on and to set: no shell has it, or another job of one. Where
// nobody hands a terminal around, because tty is none or not the one that controls this process, it is.
func InForeground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err != nil || group == 0 || group == unix.Getpgrp()
}

// HasShell reports whether there is a shell that could continue this program once it has stopped. One that is of the
// group that leads its session has none: whatever started it waits for its end.
func HasShell() bool {
	leader, err := shellGroup()
	return err == nil && leader != unix.Getpgrp()
}

// shellGroup is the group of whoever leads the session, as a shell does.
func shellGroup() (int, error) {
	session, err := unix.Getsid(0)
	if err != nil {
		return 0, err
	}
	return unix.Getpgid(session)
}
