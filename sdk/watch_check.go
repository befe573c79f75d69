package sdk

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// What a node may ask of whoever watches it, whatever it runs. A broker stays far below.
const (
	watchPulls = 1024                 // nodes that are followed at once: each has a connection and a goroutine
	pullPace   = watchHeartbeat / 100 // between two requests to a node: one that never waits must not keep us busy
	keptEvents = 2 * 10_000           // of a journal, and as many again that come while it is read
	keptLines  = 2 * 5000             // of a log, the same
)

// checkWatch finds what no broker answers to a request. Whoever follows a node goes on where it says: numbers that run
// backwards would have the same events told for ever.
func checkWatch(req wire.WatchNodeRequest, resp *wire.WatchNodeResponse) error {
	if len(resp.Events) > req.MaxEvent {
		return nonsense("watch", resp.Node, "%d events, where %d were asked for", len(resp.Events), req.MaxEvent)
	}
	next := uint64(0)
	if resp.Boot == req.Boot {
		next = req.From
	}
	for i := range resp.Events {
		if seq := resp.Events[i].Seq; seq < next {
			return nonsense("watch", resp.Node, "event %d, where %d was to come next", seq, next)
		} else if next = seq + 1; next == 0 {
			return nonsense("watch", resp.Node, "event %d, which nothing can follow", seq)
		}
	}
	switch {
	case resp.Next < next:
		return nonsense("watch", resp.Node, "that event %d comes next, where %d does", resp.Next, next)
	case resp.More && len(resp.Events) == 0:
		return nonsense("watch", resp.Node, "that there is more, and nothing of it")
	}
	return nil
}

// checkLogs is the same for lines of a log.
func checkLogs(req wire.WatchLogsRequest, resp *wire.WatchLogsResponse) error {
	if len(resp.Lines) > req.MaxLines {
		return nonsense("read logs", resp.Node, "%d lines, where %d were asked for", len(resp.Lines), req.MaxLines)
	}
	next := uint64(0)
	if resp.Boot == req.Boot {
		next = req.From
	}
	for i := range resp.Lines {
		if seq := resp.Lines[i].Seq; seq < next {
			return nonsense("read logs", resp.Node, "line %d, where %d was to come next", seq, next)
		} else if next = seq + 1; next == 0 {
			return nonsense("read logs", resp.Node, "line %d, which nothing can follow", seq)
		}
	}
	switch {
	case resp.Next < next:
		return nonsense("read logs", resp.Node, "that line %d comes next, where %d does", resp.Next, next)
	case resp.More && len(resp.Lines) == 0:
		return nonsense("read logs", resp.Node, "that there is more, and nothing of it")
	}
	return nil
}

func nonsense(op string, node NodeID, format string, args ...any) error {
	return base.Errorf(base.CodeCorruptFrame, op, "node %s tells nonsense: %s", node, fmt.Sprintf(format, args...))
}
