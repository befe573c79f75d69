package storetest

import (
	"fmt"
	"strings"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// What a node does in a second of a storm, besides counting all the ranges that it leads.
const (
	stormRolls = 5  // each is two events
	stormLines = 10 // of its log
	longestTopic,
	longestNode = 249, 64 // bytes, as brokers allow them
	longLine = 4 << 10 // a value in a line of a log
)

// Storm is [Large] when everything happens at once: the rate of each range is another each second, each node rolls five
// segments and writes ten lines a second, and all names are as long as they may be.
func Storm(seed uint64) Options {
	o := Large(seed)
	o.Quiet, o.Storm = true, true
	return o
}

// lengthen makes a name as long as it may be in a storm.
func (o *Options) lengthen(name string, longest int) string {
	if !o.Storm {
		return name
	}
	return name + "-" + strings.Repeat("x", longest-len(name)-1)
}

// storm is what happens in a tick.
func (w *world) storm(slot, slots int) (out []store.Message) {
	for i, n := range w.nodes {
		if i%slots != slot {
			continue
		}
		for range stormRolls {
			t := w.topics[w.rnd.IntN(len(w.topics))]
			r := t.ranges[w.rnd.IntN(len(t.ranges))]
			out = append(out, w.roll(r, "DATA_PRESSURE", int64(60+w.rnd.IntN(60)), r.replicas)...)
		}
		page := &store.LogPage{}
		for range stormLines {
			n.logSeq++
			page.Lines = append(page.Lines, sdk.LogLine{
				Seq: n.logSeq, TimeMs: w.now.UnixMilli(), Level: "warn", Message: fmt.Sprintf("line %d", n.logSeq),
				Attrs: []sdk.LogAttr{{Key: "value", Value: strings.Repeat("v", w.rnd.IntN(longLine))}},
			})
		}
		out = append(out, store.Message{Time: w.now, Node: n.id, Boot: n.boot, Logs: page})
	}
	return out
}
