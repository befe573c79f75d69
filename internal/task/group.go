package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
)

// ErrClosed is the cause with which [Group.Close] cancels the group's context.
var ErrClosed = errors.New("task group closed")

// Group is a set of named goroutines that live and end together. Make one with [NewGroup] or [Guard.NewGroup].
type Group struct {
	name   string
	guard  Guard // of each task
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		err    error // of the task that failed first
	}
}

// NewGroup makes an empty group; its tasks get a context below parent.
func NewGroup(parent context.Context, name string) *Group {
	g := &Group{name: name}
	g.ctx, g.cancel = context.WithCancelCause(parent)
	return g
}

// Context is what every task of the group runs under.
func (g *Group) Context() context.Context { return g.ctx }

// Go starts a task and reports whether it did: a group that is closed or has failed starts nothing more. A task
// that returns because its context has ended should return nil or the context's error; neither counts as a
// failure of its own.
func (g *Group) Go(name string, run func(ctx context.Context) error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.wg.Go(g.guard.Func(func() { g.run(name, run) }))
	return true
}

func (g *Group) run(name string, run func(ctx context.Context) error) {
	var err error
	pprof.Do(g.ctx, pprof.Labels("task", g.name+"/"+name), func(ctx context.Context) { err = run(ctx) })
	if err == nil || g.ctx.Err() != nil && errors.Is(err, g.ctx.Err()) {
		return
	}
	g.fail(fmt.Errorf("%s/%s: %w", g.name, name, err))
}

// fail records the first failure and ends the rest with it as the cause.
func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	if g.mu.err == nil {
		g.mu.err = err
		g.cancel(err)
	}
}

// Wait returns when every task has ended: the error of the first that failed, nil if none did. More tasks may be
// started while it waits, by tasks of the group.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.err
}

// Close cancels the tasks, waits for them and returns what Wait returns. It may be called more than once.
func (g *Group) Close() error {
	g.mu.Lock()
	g.mu.closed = true
	g.mu.Unlock()
	g.cancel(ErrClosed)
	return g.Wait()
}
