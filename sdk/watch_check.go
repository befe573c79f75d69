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

// answerCheck is what a node answers to who follows it: things with numbers that grow.
type answerCheck struct {
	op, thing  string // of the errors
	node       NodeID
	most       int    // that were asked for
	from, next uint64 // the number that was to come next, and that is to come after these
	more       bool
}

// checkWatch finds what no broker answers to a request for events.
func checkWatch(req wire.WatchNodeRequest, resp *wire.WatchNodeResponse) error {
	t := answerCheck{op: "watch", thing: "event", node: resp.Node, most: req.MaxEvent, next: resp.Next, more: resp.More}
	if resp.Boot == req.Boot {
		t.from = req.From
	}
	return t.check(len(resp.Events), func(i int) uint64 { return resp.Events[i].Seq })
}

// checkLogs is the same for lines of a log.
func checkLogs(req wire.WatchLogsRequest, resp *wire.WatchLogsResponse) error {
	t := answerCheck{op: "read logs", thing: "line", node: resp.Node, most: req.MaxLines, next: resp.Next, more: resp.More}
	if resp.Boot == req.Boot {
		t.from = req.From
	}
	return t.check(len(resp.Lines), func(i int) uint64 { return resp.Lines[i].Seq })
}

// check looks at n things. Whoever follows a node goes on where it says: numbers that run backwards would have the same
// things told for ever.
func (t *answerCheck) check(n int, seq func(i int) uint64) error {
	if n > t.most {
		return nonsense(t.op, t.node, "%d %ss, where %d were asked for", n, t.thing, t.most)
	}
	next := t.from
	for i := range n {
		at := seq(i)
		if at < next {
			return nonsense(t.op, t.node, "%s %d, where %d was to come next", t.thing, at, next)
		}
		if next = at + 1; next == 0 {
			return nonsense(t.op, t.node, "%s %d, which nothing can follow", t.thing, at)
		}
	}
	switch {
	case t.next < next:
		return nonsense(t.op, t.node, "that %s %d comes next, where %d does", t.thing, t.next, next)
	case t.more && n == 0:
		return nonsense(t.op, t.node, "that there is more, and nothing of it")
	}
	return nil
}

func nonsense(op string, node NodeID, format string, args ...any) error {
	return base.Errorf(base.CodeCorruptFrame, op, "node %s tells nonsense: %s", node, fmt.Sprintf(format, args...))
}
