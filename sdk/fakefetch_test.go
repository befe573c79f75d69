package sdk

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func (b *fakeBroker) fetch(r *mux.Request) {
	var req wire.FetchRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	c := b.c
	deadline := time.Now().Add(time.Duration(req.MaxWaitMs) * time.Millisecond)
	alarm := time.AfterFunc(time.Until(deadline), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer alarm.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		resp, payload, tell := c.read(b, req)
		if c.frozen[b.node] && !c.closed {
			c.changed.Wait()
			continue
		}
		if tell || req.MinBytes == 0 || !time.Now().Before(deadline) || c.closed || c.brokers[b.node] != b {
			r.Reply(wire.Encode(&resp), vfs.MemPart(payload))
			return
		}
		c.changed.Wait()
	}
}

// read collects what the ranges have; tell says that there is something to answer.
func (c *fakeCluster) read(b *fakeBroker, req wire.FetchRequest) (resp wire.FetchResponse, payload []byte, tell bool) {
	for _, q := range req.Ranges {
		res := wire.FetchRangeResult{Topic: q.Topic, Range: q.Range, State: wire.FetchActive, Next: q.Offset}
		_, rg := c.byRef(base.RangeRef{Topic: q.Topic, Range: q.Range})
		switch {
		case rg == nil:
			res.Code, tell = base.CodeTopicNotFound, true
		case c.spoil != nil && c.spoil(b, q) != base.CodeOK:
			res.Code, tell = c.spoil(b, q), true
		case c.goesOn != nil && c.goesOn(b, q):
			res.State, res.End, tell = wire.FetchNext, q.Offset, true
		case !slices.Contains(rg.at(q.Offset).Replicas, b.node):
			res.Code, tell = base.CodeNotReplica, true
			if len(rg.sealed) > 0 && q.Offset > 0 && slices.Contains(rg.at(q.Offset-1).Replicas, b.node) {
				res.Code, res.State, res.End = base.CodeOK, wire.FetchNext, q.Offset
			}
		case q.Offset < rg.earliest || q.Offset > rg.end:
			res.Code, tell = base.CodeOffsetOutOfRange, true
			res.Earliest, res.Commit = rg.earliest, rg.end
		default:
			seg := rg.at(q.Offset)
			res.Segment, res.Earliest, res.Commit = seg.ID, rg.earliest, rg.end
			if seg.End > 0 {
				res.Commit = seg.End
			}
			if known, lags := rg.known[b.node]; lags && rg.leader != b.node {
				res.Commit = min(res.Commit, known)
			}
			before := len(payload)
			if q.Offset > res.Commit || q.Offset == res.Commit && q.SeenCommit > res.Commit {
				res.Code, tell = base.CodeBehind, true
			}
			for i, h := range rg.heads {
				if h.End() <= q.Offset || h.End() > res.Commit {
					continue
				}
				if n := len(payload) - before; n > 0 && (n+len(rg.batches[i]) > int(q.MaxBytes) || len(payload)+len(rg.batches[i]) > int(req.MaxBytes)) {
					break
				}
				batch := rg.batches[i]
				if c.garble != nil {
					batch = c.garble(b, batch)
				}
				payload = append(payload, batch...)
				res.Next = h.End()
				tell = true
			}
			res.PayloadLen = uint32(len(payload) - before)
			if rg.route.State == base.StateSealed && res.Next >= rg.end {
				res.State, res.End, tell = wire.FetchSealed, rg.end, true
			}
		}
		resp.Ranges = append(resp.Ranges, res)
	}
	return resp, payload, tell
}
