package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// A name in a row is the one copy that there is of it: neither that of a message, nor a part of an event's text.
func TestRowsShareTheirNames(t *testing.T) {
	s := New(Options{History: -1})
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	own := func(text string) string { return strings.Clone(text) }
	seq := uint64(0)
	for i := range 2 {
		s.Apply(Message{Time: start, Node: sdk.NodeID(own("n1")), Boot: 1, Counters: &sdk.NodeCounters{Ranges: []sdk.RangeCounters{
			{Topic: own("orders"), Range: sdk.RangeID(i + 1), Load: own("pressure"), InBytesPerSec: 1},
		}}})
		seq++
		s.Apply(Message{Time: start, Node: "n1", Boot: 1, Event: &sdk.Event{
			Seq: seq, TimeMs: start.UnixMilli(), Type: own("SEGMENT_SEALED"), Subject: fmt.Sprintf("orders/r%d", i+1), Cause: own("AGE"),
			Detail: fmt.Sprintf("bytes=1 end=10 next=s%d replicas=n1,n2,n3 segment=s%d", 10+i, i+1),
		}})
	}
	v := s.View(start)
	same := func(a, b string) {
		t.Helper()
		require.Equal(t, a, b)
		require.Same(t, unsafe.StringData(a), unsafe.StringData(b), a)
	}
	a, b := v.Ranges.At(0), v.Ranges.At(1)
	same(a.Key.Topic, b.Key.Topic)
	same(a.Load, b.Load)
	same(string(a.Leader), string(b.Leader))
	same(v.Events.At(0).Type, v.Events.At(1).Type)
	x, y := v.Segments.Get(10), v.Segments.Get(11)
	same(x.Range.Topic, a.Key.Topic)
	same(x.Cause, y.Cause)
	same(string(x.Replicas[2].Node), string(y.Replicas[2].Node))
	same(v.Seals.At(0).Range.Topic, a.Key.Topic)
}

// What nobody would call a name is not remembered, and many are forgotten again.
func TestNamesAreBounded(t *testing.T) {
	n := make(names)
	long := strings.Repeat("x", maxName+1)
	require.Equal(t, long, n.of(long))
	require.Empty(t, n)
	for i := range maxNames + 10 {
		n.of(fmt.Sprint(i))
	}
	require.Len(t, n, 10)
	require.Empty(t, n.of(""))
}
