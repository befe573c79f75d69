package task

import (
	"errors"
	"fmt"
	"sync"
)

// Closer remembers how to undo what was started and undoes it in reverse order, once. The zero Closer is empty
// and ready. It may be used by any number of goroutines.
type Closer struct {
	mu     sync.Mutex
	steps  []step
	done   chan struct{} // non-nil once a Close has begun; closed when it has ended
	result error
}

type step struct {
	name string
	undo func() error
}

// Push adds a step that Close runs before all steps pushed earlier. Pushing on a closed Closer panics: the
// caller would leak what it just started.
func (c *Closer) Push(name string, undo func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		panic("task: " + name + " pushed on a closed Closer")
	}
	c.steps = append(c.steps, step{name, undo})
}

// Close runs every step, last in first out, goes on after an error and returns all of them joined, each with its
// step's name. A second call waits for the first and returns the same.
func (c *Closer) Close() error {
	c.mu.Lock()
	if done := c.done; done != nil {
		c.mu.Unlock()
		<-done
		return c.result
	}
	c.done = make(chan struct{})
	steps := c.steps
	c.steps = nil
	c.mu.Unlock()

	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		if err := steps[i].undo(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", steps[i].name, err))
		}
	}
	c.result = errors.Join(errs...)
	close(c.done)
	return c.result
}
