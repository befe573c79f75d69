package app

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// guard runs the goroutines of the program, those of its feed and of the clients in it: run is their task.Guard. A panic
// in one of them ends the program in good order: it is kept, and the context is cancelled, so that whoever owns the
// terminal gives it back before anything is printed. What the guard does not see, a keeper does (see internal/term).
type guard struct {
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup
	faulted chan struct{} // closed when a panic was caught

	mu    sync.Mutex
	fault *panicked // the first
}

func newGuard(cancel context.CancelCauseFunc) *guard {
	return &guard{cancel: cancel, faulted: make(chan struct{})}
}

// panicked is a panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Go runs f, which must return soon after the program's context has ended.
func (g *guard) Go(f func()) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		g.run(f)
	}()
}

// start runs f, which may not return at all. ended is closed when it has, and a panic of it was caught.
func (g *guard) start(f func()) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.run(f)
	}()
	return done
}

// run calls f here.
func (g *guard) run(f func()) {
	defer func() {
		if r := recover(); r != nil {
			g.caught(r, debug.Stack())
		}
	}()
	f()
}

func (g *guard) caught(r any, stack []byte) {
	g.mu.Lock()
	if g.fault == nil {
		g.fault = &panicked{r, stack}
		close(g.faulted)
	}
	fault := g.fault
	g.mu.Unlock()
	g.cancel(fault)
}

// finish closes what is still open, waits for all that Go has started, and returns what was caught. After a panic it does
// not wait for long: whatever has panicked may hold a lock.
func (g *guard) finish(closing func() error) (fault *panicked, err error) {
	ended := g.start(func() {
		err = closing()
		g.wg.Wait()
	})
	select {
	case <-ended:
	case <-g.faulted:
		if !within(stopTime, ended) {
			return g.caughtFault(), nil // err is not ours yet
		}
	}
	return g.caughtFault(), err
}

func (g *guard) caughtFault() *panicked {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}
