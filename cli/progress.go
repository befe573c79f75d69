package cli

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/term"
)

const progressEvery = 200 * time.Millisecond

// progress redraws one line on stderr while something runs.
type progress struct {
	quit chan struct{}
	done chan struct{}
}

// startProgress begins drawing, if stderr can be drawn over and -q is not given. stop must be called.
func (a *app) startProgress(line func(elapsed time.Duration) string) *progress {
	if !a.io.RepaintsErr() || a.flags.quiet {
		return noProgress()
	}
	p := &progress{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		start := a.Now()
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		drawn := false
		for {
			select {
			case <-t.C:
				cols, _ := a.io.Size()
				fprintf(a.io.Err, "\r%s\x1b[K", term.Truncate(line(a.Now().Sub(start)), cols-1, a.io.ASCII()))
				drawn = true
			case <-p.quit:
				if drawn {
					fprintf(a.io.Err, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return p
}

// noProgress draws nothing.
func noProgress() *progress {
	p := &progress{quit: make(chan struct{}), done: make(chan struct{})}
	close(p.done)
	return p
}

// stop clears the line and waits until nothing more is drawn.
func (p *progress) stop() {
	close(p.quit)
	<-p.done
}

// pacer spreads events evenly: the nth is due n/rate after the start, however late the ones before it were.
type pacer struct {
	start time.Time
	step  float64 // nanoseconds between events; 0 = no limit
	n     int64
}

func newPacer(perSec float64, start time.Time) *pacer {
	p := &pacer{start: start}
	if perSec > 0 {
		p.step = 1e9 / perSec
	}
	return p
}

// due is when the next event should happen, and counts it.
func (p *pacer) due() time.Time {
	t := p.start.Add(time.Duration(float64(p.n) * p.step))
	p.n++
	return t
}

// wait sleeps until the next event is due.
func (p *pacer) wait(ctx context.Context) error {
	if p.step == 0 {
		return nil
	}
	return sleepUntil(ctx, p.due())
}
