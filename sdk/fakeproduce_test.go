package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// fakeProduce is one produce request as the script sees it.
type fakeProduce struct {
	broker *fakeBroker
	req    wire.ProduceRequest
	head   header.Header
	batch  []byte
}

// verdict is what the script makes of a produce.
type verdict struct {
	refuse error         // answer this and do not append
	lose   bool          // append, then cut the connection instead of answering
	drop   bool          // do not append, and cut the connection
	mute   bool          // append, and never answer
	forget bool          // do not append, and never answer
	hold   chan struct{} // answer only when this is closed
}

type fakeProducerState struct {
	epoch  int16
	next   int32
	last   []wire.ProducerBatch
	lastAt time.Time
}

func (b *fakeBroker) produce(r *mux.Request) {
	var req wire.ProduceRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	h, err := header.Check(r.Payload, int(b.c.maxBatch))
	if err != nil {
		r.Fail(err)
		return
	}
	c := b.c
	c.mu.Lock()
	c.produce++
	n, script := c.produce, c.script
	c.mu.Unlock()
	var v verdict
	if script != nil {
		v = script(n, &fakeProduce{broker: b, req: req, head: h, batch: r.Payload})
	}
	switch {
	case v.refuse != nil:
		r.Fail(v.refuse)
		return
	case v.forget:
		return
	case v.drop:
		c.net.cut(b.addr)
		r.Fail(base.CodeShuttingDown)
		return
	}
	resp, err := c.append(b, req, h, r.Payload)
	switch {
	case v.mute:
		return
	case v.lose:
		c.net.cut(b.addr)
		r.Fail(base.CodeShuttingDown) // goes nowhere
		return
	}
	answer := func() {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(&resp))
	}
	if v.hold != nil {
		go func() { <-v.hold; answer() }()
		return
	}
	answer()
}

// append checks the sequence and stores the batch, as a broker does.
func (c *fakeCluster) append(b *fakeBroker, req wire.ProduceRequest, h header.Header, batch []byte) (wire.ProduceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, rg := c.byRef(base.RangeRef{Topic: req.Topic, Range: req.Range})
	switch {
	case rg == nil:
		return wire.ProduceResponse{}, base.Errorf(base.CodeTopicNotFound, "produce", "no such topic")
	case rg.route.State == base.StateSealed:
		return wire.ProduceResponse{}, base.Errorf(base.CodeRangeMoved, "produce", "the range was split")
	case rg.leader != b.node:
		to := c.brokers[rg.leader]
		return wire.ProduceResponse{}, base.Errorf(base.CodeSegmentMoved, "produce", "not the leader").WithRedirect(base.Redirect{Node: to.node, Address: to.addr})
	}
	resp := wire.ProduceResponse{
		Base: rg.end, AppendMs: time.Now().UnixMilli(), Segment: rg.route.Active.ID, Epoch: rg.epoch, Replicas: rg.route.Active.Replicas,
	}
	if h.HasProducer() {
		s := rg.producers[h.ProducerID]
		switch {
		case s != nil && h.ProducerEpoch < s.epoch:
			return resp, base.Errorf(base.CodeProducerFenced, "produce", "epoch %d is behind %d", h.ProducerEpoch, s.epoch)
		case s != nil && h.ProducerEpoch == s.epoch:
			for _, old := range s.last {
				if old.BaseSequence == h.BaseSequence {
					resp.Base, resp.Duplicate = old.Base, true
					if old.Base < rg.route.Active.Base {
						resp.Replicas = nil
					}
					return resp, nil
				}
			}
			if h.BaseSequence != s.next {
				return resp, base.Errorf(base.CodeOutOfOrder, "produce", "sequence %d, %d is next", h.BaseSequence, s.next)
			}
		case h.BaseSequence != 0:
			return resp, base.Errorf(base.CodeUnknownProducer, "produce", "producer %d is not known", h.ProducerID)
		default:
			s = &fakeProducerState{epoch: h.ProducerEpoch}
			rg.producers[h.ProducerID] = s
		}
		s.next, s.lastAt = addSequence(h.LastSequence(), 1), time.Now()
		s.last = append(s.last, wire.ProducerBatch{BaseSequence: h.BaseSequence, LastSequence: h.LastSequence(), Base: rg.end})
		if len(s.last) > 5 {
			s.last = s.last[1:]
		}
	}
	stored := append([]byte(nil), batch...)
	header.Patch(stored, rg.end, int32(rg.epoch))
	h.BaseOffset, h.Epoch = rg.end, int32(rg.epoch)
	rg.batches, rg.heads = append(rg.batches, stored), append(rg.heads, h)
	rg.end = h.End()
	c.changed.Broadcast()
	return resp, nil
}
