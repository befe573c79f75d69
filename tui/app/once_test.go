package app

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/store"
)

// asking is a feed of one node that tells by itself what nodes do, and what it is asked for when it is asked.
type asking struct{ out chan store.Message }

func newAsking() *asking {
	f := &asking{make(chan store.Message, 256)}
	id, _ := sdk.ParseShardID("7")
	f.say(
		store.Message{Hello: &store.Hello{Cluster: "cf27ce80", Seeds: []string{"n1:2921"}}},
		store.Message{Nodes: &sdk.NodeList{Nodes: []sdk.NodeStatus{{ID: "n1", State: "alive", Address: "n1:2921"}}}},
		store.Message{Node: "n1", Boot: 1, State: &sdk.NodeState{Self: sdk.NodeStatus{ID: "n1"}, Shards: []sdk.ShardStatus{{ID: id, Leader: "n1", Term: 3}}}},
		store.Message{Node: "n1", Boot: 1, Counters: &sdk.NodeCounters{InBytesPerSec: 2000, Ranges: []sdk.RangeCounters{{Topic: "orders", Range: 1, InBytesPerSec: 2000, Segment: 5}}}},
		store.Message{Health: &sdk.ClusterHealth{Checks: []sdk.HealthCheck{{Name: "nodes are alive", Result: sdk.HealthPass, Detail: "1 of 1 nodes alive"}}}},
	)
	return f
}

func (f *asking) say(list ...store.Message) {
	for _, m := range list {
		m.Time = time.Now()
		f.out <- m
	}
}

func (f *asking) Messages() <-chan store.Message { return f.out }
func (f *asking) Now() time.Time                 { return time.Now() }
func (f *asking) Retry()                         {}
func (f *asking) SetSeeds([]string)              {}
func (f *asking) Err() error                     { return nil }
func (f *asking) Close() error                   { return nil }

func (f *asking) Show(v feed.Viewport) {
	if v.TopicList {
		f.say(store.Message{Topics: &store.TopicPage{Topics: []sdk.TopicSummary{{Name: "orders", ReplicationFactor: 3, Ranges: 1, Segments: 4, Bytes: 5 << 20}}, Complete: true}})
	}
	for _, name := range v.Topics {
		f.say(store.Message{Topic: &sdk.TopicDetail{Summary: sdk.TopicSummary{Name: name, ReplicationFactor: 3, Ranges: 1, Segments: 4, Bytes: 5 << 20}}})
	}
	if v.Segments != nil {
		f.say(store.Message{Segments: &store.SegmentPage{Segments: []sdk.SegmentRow{{Topic: "orders", Range: 1, ReplicationFactor: 3, Copies: 3, Segment: sdk.SegmentDetail{ID: 2, State: base.StateSealed, Bytes: 3 << 20}}}}})
	}
	if v.Shards {
		id, _ := sdk.ParseShardID("7")
		f.say(store.Message{Shards: &sdk.ShardList{Observer: "n1", Shards: []sdk.ShardStatus{{ID: id, Leader: "n1", Term: 3, Commit: 4711}}}})
	}
	if v.Logs != nil {
		f.say(store.Message{Node: "n1", Boot: 1, Logs: &store.LogPage{Lines: []sdk.LogLine{{Seq: 1, Level: "info", Message: "started in good order"}}}})
	}
}

// One look has what the screen would have after a moment, whichever view it is of; a document has all of it.
func TestOneLookAsksForWhatItShows(t *testing.T) {
	for view, want := range map[string]string{
		"overview": "orders", "ring": "n1", "shards": "4,711", "topics": "5.0 MiB", "ranges": "orders", "segments": "3.0 MiB", "groups": "no consumer groups yet",
		"events": "events", "logs": "started in good order",
	} {
		t.Run(view, func(t *testing.T) {
			require.Contains(t, look(t, Options{View: view, Format: term.FormatTable}), want)
		})
	}
	for _, format := range []term.Format{term.FormatJSON, term.FormatJSONL} {
		require.Contains(t, look(t, Options{Format: format}), "3145728", "the segments are in it")
	}
}

func look(t *testing.T, opts Options) (text string) {
	synctest.Test(t, func(t *testing.T) {
		opts.Once, opts.Refresh, opts.Getenv = true, time.Second, os.Getenv
		streams, _, out, _ := term.Test()
		began := time.Now()
		_, err := runOnce(t.Context(), opts, streams, func(Options, *guard) (feed.Feed, error) { return newAsking(), nil })
		require.NoError(t, err)
		require.Less(t, time.Since(began), onceLatest, "nothing was waited for in vain")
		text = out.String()
	})
	return text
}
