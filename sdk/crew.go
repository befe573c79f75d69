package sdk

import (
	"context"
	"sync"
)

// crew is the goroutines of one reading of many nodes: whoever began it waits for running before it returns.
type crew struct {
	c       *Client
	running sync.WaitGroup
}

// goRun runs f until ctx ends or the client is closed.
func (g *crew) goRun(ctx context.Context, name string, f func(context.Context)) error {
	g.running.Add(1)
	started := g.c.group.Go(name, func(closing context.Context) error {
		defer g.running.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(closing, g.c.cfg.guard.Func(cancel))()
		f(ctx)
		return nil
	})
	if !started {
		g.running.Done()
		return errClosed("client")
	}
	return nil
}
