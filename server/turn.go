package server

import "context"

// turn is a lock for work that waits, for a disk or for other nodes: who waits for it can give up, and virtual time goes
// on meanwhile.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn; with an error it is not taken.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }
