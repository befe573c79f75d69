package term

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// Keys reads single keys of a terminal for a command that fills the screen: they come as they are pressed and are not
// echoed, and Ctrl-C goes on to be a signal. It calls press with each until press returns false or stop is called, which
// waits for that and puts the terminal back as it was. Where r is no terminal nothing is read.
func Keys(ctx context.Context, s *IOStreams, press func(key byte) bool) (stop func()) {
	f, ok := s.In.(*os.File)
	if !ok || !s.inTTY {
		return func() {}
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	quiet := *before
	quiet.Lflag &^= unix.ICANON | unix.ECHO
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &quiet); err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := Interruptible(ctx, f)
		var one [1]byte
		for {
			if n, err := r.Read(one[:]); err != nil || n == 0 || !press(one[0]) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		// There is nobody left to tell of a terminal that has gone away meanwhile.
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, before)
	}
}
