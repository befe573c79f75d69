package sdk

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/wire"
)

// A failure must not turn a producer that asked for no recognition into one that has it.
func TestWithoutIdempotenceNoBatchEverCarriesAnIdentity(t *testing.T) {
	scripts := map[string]func(n int, p *fakeProduce) verdict{
		"refused": func(n int, _ *fakeProduce) verdict { return refuseWhen(n == 1, base.CodeCorruptBatch) },
		"mute":    func(n int, _ *fakeProduce) verdict { return verdict{mute: n == 1} },
		"busy":    func(n int, _ *fakeProduce) verdict { return refuseWhen(n < 5, base.CodeBusy) },
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				c.addTopic("orders", 1)
				var mu sync.Mutex
				var ids []int64
				c.script = func(n int, p *fakeProduce) verdict {
					mu.Lock()
					defer mu.Unlock()
					ids = append(ids, p.head.ProducerID)
					return script(n, p)
				}
				p, err := cl.NewProducer("orders", WithLinger(0), WithIdempotence(false), WithDeliveryTimeout(2*time.Second))
				require.NoError(t, err)
				for i := range 3 {
					_, err = p.Send(t.Context(), Record{Value: value(i)})
				}
				require.NoError(t, err)
				require.NoError(t, p.Close(t.Context()))
				for _, id := range ids {
					require.EqualValues(t, header.NoProducer, id)
				}
				require.Zero(t, p.Stats().Identities)
			})
		})
	}
}

// What cannot even be sent fails at once, and does not keep those behind it waiting for a timer.
func TestABatchThatCannotBeSentDoesNotHoldUpTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		hold := make(chan struct{})
		c.script = func(n int, _ *fakeProduce) verdict {
			if n == 1 {
				return verdict{hold: hold}
			}
			return verdict{}
		}
		p, err := cl.NewProducer("orders", WithLinger(0), WithMaxBatchRecords(1), WithMaxInFlight(1))
		require.NoError(t, err)
		var s sent
		require.NoError(t, p.SendAsync(Record{Value: value(0)}, s.done(0)))
		require.NoError(t, p.SendAsync(Record{Value: make([]byte, 5000)}, s.done(1)))
		require.NoError(t, p.SendAsync(Record{Value: value(1)}, s.done(2)))
		cl.maxBatch.Store(1000) // as a broker that was started again with a smaller limit says at the next handshake
		began := time.Now()
		close(hold)
		require.NoError(t, p.Flush(t.Context()))
		require.Less(t, time.Since(began), time.Second)
		require.ErrorIs(t, s.errs[1], CodeBatchTooLarge)
		require.NoError(t, s.errs[2])
		requireOnce(t, c, topic, 1, 2)
		require.NoError(t, p.Close(t.Context()))
	})
}

// A connection that breaks leaves the fate of a change open. A question has none.
func TestAQuestionHasNoUnknownOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		_, err := cl.topics.get("orders").fresh(t.Context())
		require.NoError(t, err)
		c.mu.Lock()
		c.mute = wire.KindListOffsets
		c.mu.Unlock()
		time.AfterFunc(time.Second, func() { c.stop("n1") })
		err = cl.callOnce(t.Context(), cl.brokers.at("n1:2921"), wire.KindListOffsets, wire.Encode(wire.ListOffsetsRequest{}), &wire.ListOffsetsResponse{})
		require.ErrorIs(t, err, CodeUnreachable)
		require.Equal(t, OutcomeNotApplied, OutcomeOf(err), "%v", err)
	})
}

// A retry that no longer finds the topic may have been preceded by a try that removed it.
func TestARetriedChangeThatFindsNothingIsUnknown(t *testing.T) {
	a := asking{kind: wire.KindDeleteTopic, op: "delete topic", sent: true}
	err := a.refusal(base.Errorf(base.CodeTopicNotFound, "delete topic", "topic orders not found"))
	require.Equal(t, OutcomeUnknown, OutcomeOf(err))
	require.ErrorIs(t, err, CodeTopicNotFound)
	a.sent = false
	require.Equal(t, OutcomeNotApplied, OutcomeOf(a.refusal(errors.Join(base.CodeTopicNotFound))))
	a.sent = true
	require.Equal(t, OutcomeNotApplied, OutcomeOf(a.refusal(base.Errorf(base.CodeInvalidArgument, "", "no"))), "state machines know their request ids")
}

// What a broker sees of the nodes decides about a retry before its request id is looked at.
func TestARetriedChangeThatTheNodesRefuseIsUnknown(t *testing.T) {
	for kind, codes := range map[wire.Kind][]base.Code{
		wire.KindCreateTopic: {base.CodeNotEnoughNodes},
		wire.KindChangeNode:  {base.CodePreconditionFailed, base.CodeNodeNotFound}, // it has left already: by the first try
	} {
		for _, code := range codes {
			a := asking{kind: kind, op: kindName(kind)}
			err := base.Errorf(code, "", "no")
			require.Equal(t, OutcomeNotApplied, OutcomeOf(a.refusal(err)), "%s, %s, the first try", kind, code)
			a.sent = true
			require.Equal(t, OutcomeUnknown, OutcomeOf(a.refusal(err)), "%s, %s", kind, code)
		}
	}
	a := asking{kind: wire.KindAlterTopic, op: "alter topic", sent: true}
	require.Equal(t, OutcomeNotApplied, OutcomeOf(a.refusal(base.Errorf(base.CodePreconditionFailed, "", "no"))))
}

// A table made from an older route, or for a topic that is gone, must not take the place of what is there.
func TestATableIsNotReplacedByAnOlderOne(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		pt := p.home.Load()
		older := pt.table.Load()
		c.move(topic, 1, "n2")
		newer, err := pt.topic.renew(t.Context(), older.route)
		require.NoError(t, err)
		pt.follow(newer)
		require.Same(t, newer, pt.table.Load().route)
		pt.follow(older.route)
		require.Same(t, newer, pt.table.Load().route)
		pt.removed(CodeTopicNotFound)
		pt.follow(newer)
		require.Nil(t, pt.table.Load(), "its buffers take nothing any more: senders would go round for ever")
		require.NoError(t, p.Close(t.Context()))
	})
}
