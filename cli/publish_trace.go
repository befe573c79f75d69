package cli

import (
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// publishTrace is where the time of one record went.
type publishTrace struct {
	Stages  []traceStage `json:"stages" doc:"in the order in which they began"`
	Leader  string       `json:"leader"`
	Tries   int          `json:"tries"`
	Records int          `json:"batch_records"`
	Bytes   int          `json:"batch_bytes" doc:"as sent"`
}

// traceStage is one stage. Those of the brokers lie within commit, and side by side.
type traceStage struct {
	Stage  string  `json:"stage" col:"STAGE" doc:"route, linger, encode, retries, send, commit; within commit: leader_fsync, replicate, follower_fsync (no fsyncs where the ack did not wait for them); total"`
	Node   string  `json:"node" col:"NODE"`
	AtMs   float64 `json:"at_ms" col:"AT" as:"ms" doc:"when it began, from the call; what brokers tell is placed as if the ways there and back took equally long"`
	TookMs float64 `json:"took_ms" col:"TOOK" as:"ms"`
	Detail string  `json:"detail" col:"WHAT,fold"`
}

func newPublishTrace(t sdk.Trace) *publishTrace {
	out := &publishTrace{Leader: string(t.Leader), Tries: t.Tries, Records: t.Records, Bytes: t.Bytes}
	var at time.Duration
	add := func(stage, node string, at, took time.Duration, detail string) {
		out.Stages = append(out.Stages, traceStage{Stage: stage, Node: node, AtMs: millis(at), TookMs: millis(took), Detail: detail})
	}
	for _, s := range []struct {
		stage, detail string
		took          time.Duration
	}{
		{"route", "find the topic's ranges and the leader", t.Route},
		{"linger", "wait in the batch for others, for those before it, and for a connection", t.Linger},
		{"encode", fmt.Sprintf("%s, %s", plural(int64(t.Records), "record"), term.BytesIEC.Format(int64(t.Bytes))), t.Encode},
		{"retries", fmt.Sprintf("%d tries failed before", max(t.Tries-1, 0)), t.Retried},
	} {
		if s.stage == "retries" && t.Tries < 2 {
			continue
		}
		add(s.stage, "", at, s.took, s.detail)
		at += s.took
	}
	add("send", "", at, t.Send, "the ways to the leader and back")
	if t.Leader != "" {
		arrived := at + t.Send/2
		add("commit", string(t.Leader), arrived, t.Commit, "from its arrival until every replica had it")
		if t.LeaderFsync > 0 {
			add("leader_fsync", string(t.Leader), arrived+t.Taken, t.LeaderFsync-t.Taken, "to the leader's own log")
		}
		for _, f := range t.Followers {
			add("replicate", string(f.Node), arrived+f.Sent, f.Acked-f.Sent, "to the follower and back")
			if f.Fsync > 0 {
				add("follower_fsync", string(f.Node), arrived+f.Sent+(f.Acked-f.Sent-f.Fsync)/2, f.Fsync, "of that, to the follower's log")
			}
		}
	}
	add("total", "", 0, t.Total, "")
	return out
}

func (t *publishTrace) page(p *term.Page) {
	if t == nil {
		return
	}
	p.Line("")
	p.Table(t.Stages)
}
