package feed

import (
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// Feed is where messages come from.
type Feed interface {
	// Messages is closed when nothing more will come: a recording has ended, or the feed was closed.
	Messages() <-chan store.Message
	// Now is the time to look at a store at: that of the recording, for one.
	Now() time.Time
	// Show says what is on the screen.
	Show(Viewport)
	// Retry tries at once what would be tried later, and asks at once for what would be asked for later.
	Retry()
	// SetSeeds goes to other brokers.
	SetSeeds(seeds []string)
	// Err is why Messages was closed, nil for the end of a recording and while there is more; and what is wrong with a file
	// that is written beside.
	Err() error
	// Close ends the feed, and waits for its goroutines. It may be called twice.
	Close() error
}

// Viewport is what is on the screen, and so worth asking for.
type Viewport struct {
	Topics    []string // whose ranges and segments are shown; the first MostTopics are asked for
	TopicList bool     // the list of topics
	Segments  *SegmentsShown
	Shards    bool // with what only their leaders know
	Health    bool // more often than otherwise
	Nodes     bool // the same: round trips, damaged files
	Logs      *LogsShown
	Still     bool // the screen stands still, or is in the past: a recording waits
}

// SegmentsShown selects segments.
type SegmentsShown struct {
	Topic string // empty: of all topics
}

// LogsShown selects log lines.
type LogsShown struct {
	Nodes []sdk.NodeID // none: all
	Level string       // this and worse; empty: all
}

// MostTopics is of how many topics the details are asked for in one round.
const MostTopics = 16

const (
	queueLength  = 1024 // messages between the feed and the store
	topicLimit   = 1000
	segmentLimit = 500
	logsFirst    = 200 // lines of each node to begin with
)
