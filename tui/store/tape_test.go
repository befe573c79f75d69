package store

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// Each kind of message is read as it was kept, whatever bytes a log or a name has.
func TestTape(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	odd := "\xff\x00 \x1b[31m שלום"
	want := []Message{
		{Time: at, Hello: &Hello{Cluster: "c", Seeds: []string{"a:1", odd}}},
		{Time: at, Conn: &Conn{Lost: true, Error: odd, Next: at.Add(time.Second)}},
		{Time: at, Node: "n1", Boot: 7, Stream: &Stream{State: StreamLost, Error: odd}},
		{Time: at, Node: "n1", Boot: 7, Gap: &Gap{Lost: 1 << 63, Over: true}},
		{Time: at, Node: "n1", State: &sdk.NodeState{RingHash: 1 << 63, Members: []sdk.RingMember{{Node: "n2", State: "suspect"}}}},
		{Time: at, Node: "n1", Thin: true, Counters: &sdk.NodeCounters{ObservedMs: -1, Others: []int{1, 2}, Ranges: []sdk.RangeCounters{{Topic: odd, TopicID: sdk.TopicID{1, 2}, Range: 3}}}},
		{Time: at, Node: "n1", Event: &sdk.Event{Seq: 1, Type: "X", Detail: odd}},
		{Time: at, Totals: &Totals{Missing: []sdk.ShardID{{Root: 7, Path: 1, PathLen: 3}}}},
		{Time: at, Topics: &TopicPage{Topics: []sdk.TopicSummary{{Name: odd, Labels: map[string]string{"team": "a"}}}, Complete: true}},
		{Time: at, Topic: &sdk.TopicDetail{Ranges: []sdk.RangeDetail{{ID: 1, Segments: []sdk.SegmentDetail{{ID: 2, Replicas: []sdk.ReplicaDetail{{Node: "n1"}}}}}}}},
		{Time: at, Gone: &Gone{Topic: odd, Exists: true}},
		{Time: at, Segments: &SegmentPage{Segments: []sdk.SegmentRow{{Topic: odd, Range: 1}}}},
		{Time: at, Node: "n1", Logs: &LogPage{Lines: []sdk.LogLine{{Seq: 1, Message: odd, Attrs: []sdk.LogAttr{{Key: "k", Value: odd}}}}, Anew: true}},
	}
	var packed bytes.Buffer
	packer := newPacker()
	packer.Reset(&packed)
	writer := writing.NewEncoder(packer)
	for _, m := range want {
		require.NoError(t, writer.Encode(m))
	}
	require.NoError(t, packer.Flush(), "the last frame is read while it grows")
	for _, skip := range []int{0, 5, len(want)} {
		tape, err := playing(packed.Bytes(), len(want), skip)
		require.NoError(t, err)
		for i := skip; ; i++ {
			m, err := tape.next()
			if err == io.EOF {
				require.Len(t, want, i)
				break
			}
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want[i], m, cmpopts.EquateEmpty()))
		}
		tape.end()
	}
}
