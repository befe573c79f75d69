package term

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is how soon a read of a quiet stdin notices that its command was cancelled.
const pollEvery = 100 * time.Millisecond

// Interruptible makes reads of r end when ctx does. A plain read of a terminal cannot be taken back: left behind
// by a Ctrl-C it would swallow the next line typed at the prompt. So a file is polled before it is read.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	f, ok := r.(*os.File)
	if !ok {
		return contextReader{ctx, r}
	}
	return &polledReader{ctx: ctx, f: f, fd: int32(f.Fd())}
}

type polledReader struct {
	ctx context.Context
	f   *os.File
	fd  int32
}

func (p *polledReader) Read(b []byte) (int, error) {
	for {
		if p.ctx.Err() != nil {
			return 0, context.Cause(p.ctx)
		}
		fds := []unix.PollFd{{Fd: p.fd, Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(pollEvery/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return p.f.Read(b)
		}
		if n > 0 {
			return p.f.Read(b)
		}
	}
}

// contextReader checks ctx between reads that cannot be interrupted.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(b)
}
