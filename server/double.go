package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// A clone of a running node's directories has a later start than the original, and looks to everybody like the node come
// back: the original would have to end. So whoever starts asks first whether the node that it is is connected right now.
// A process that was killed is not: its connections broke with it, or fell silent.

const (
	doubleWait  = 300 * time.Millisecond // for one round of answers; a machine that is down gives none
	doubleFor   = 2 * time.Second        // how long the other process must be seen: a connection may outlast its process for a moment
	doublePause = 250 * time.Millisecond
)

// findDouble refuses to start beside another process of this node.
func (s *Server) findDouble(ctx context.Context) error {
	for began := time.Now(); ; {
		boot := s.askForDouble(ctx)
		switch {
		case boot == 0 || ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(began) >= doubleFor:
			return base.Errorf(base.CodeFenced, "start", "node %s runs already, as start %d: this would be start %d", s.id.Node, boot, s.id.Boot).
				WithHint("stop the other broker first; or, if this is to be another node, give it another node_id and directories of its own")
		}
		if !task.Pause(ctx, doublePause) {
			return context.Cause(ctx)
		}
	}
}

// askForDouble asks everybody who is known, once, side by side.
func (s *Server) askForDouble(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, doubleWait)
	defer cancel()
	var double atomic.Uint64
	var asking sync.WaitGroup
	slots := make(chan struct{}, askAtOnce)
	for _, addr := range s.members.known() {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			_, b, err := s.peers.CallAddr(ctx, addr, kindWho, wire.Encode(whoMessage{}))
			var answer whoAnswer
			if err == nil && wire.Decode(b, &answer) == nil && answer.Double > 0 {
				double.Store(answer.Double)
			}
		})
	}
	asking.Wait()
	return double.Load()
}
