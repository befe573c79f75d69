package app

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// guard runs the goroutines of the program. A panic in one of them ends the program in good order: it is kept, and the
// context is cancelled, so that whoever owns the terminal gives it back before anything is printed.
type guard struct {
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	fault *panicked // the first
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
	}
	fault := g.fault
	g.mu.Unlock()
	g.cancel(fault)
}

// wait waits for all that Go has started, and returns what was caught.
func (g *guard) wait() *panicked {
	g.wg.Wait()
	return g.caughtFault()
}

func (g *guard) caughtFault() *panicked {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}
