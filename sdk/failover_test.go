package sdk

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// steady sends values 0, 1, 2, … every few milliseconds until it is stopped, and notes the longest time between two acks.
type steady struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	stop    chan struct{}
	done    chan struct{}
	sent    int
}

func sendSteadily(t *testing.T, p *Producer) *steady {
	s := &steady{last: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			err := p.SendAsync(Record{Key: []byte("k"), Value: value(s.sent)}, func(_ Ack, err error) {
				assert.NoError(t, err)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.longest, s.last = max(s.longest, time.Since(s.last)), time.Now()
			})
			if !assert.NoError(t, err) {
				return
			}
			s.sent++
		}
	}()
	return s
}

// finish ends it, and returns how many were sent and the longest gap.
func (s *steady) finish(t *testing.T, p *Producer) (int, time.Duration) {
	close(s.stop)
	<-s.done
	require.NoError(t, p.Close(t.Context()))
	return s.sent, s.longest
}

// A leader that dies is left at once: its successor gets everything in order, however soon or late it is named.
func TestProducerGoesOnWhenItsLeaderDies(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "soon": 120 * time.Millisecond, "late": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				p, err := cl.NewProducer("orders", WithLinger(time.Millisecond))
				require.NoError(t, err)
				s := sendSteadily(t, p)
				time.Sleep(time.Second)
				c.stop("n1")
				time.Sleep(takes)
				c.move(topic, 1, "n2")
				time.Sleep(time.Second)
				n, gap := s.finish(t, p)
				require.LessOrEqual(t, gap, takes+250*time.Millisecond, "what the cluster needs, and one look at the route")
				requireOnce(t, c, topic, 1, n)
				require.Zero(t, p.Stats().Identities, "everything was recognised")
			})
		})
	}
}

// A leader that says nothing, as one that was stopped, is left as soon as the metadata names another. What it says later is
// not believed, and nothing is stored twice.
func TestProducerLeavesALeaderThatIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(time.Millisecond))
		require.NoError(t, err)
		s := sendSteadily(t, p)
		time.Sleep(time.Second)
		c.freeze("n1", true)
		const takes = 2200 * time.Millisecond
		time.Sleep(takes)
		c.move(topic, 1, "n2")
		time.Sleep(time.Second)
		c.freeze("n1", false)
		time.Sleep(time.Second)
		n, gap := s.finish(t, p)
		require.LessOrEqual(t, gap, takes+2*lookEvery+200*time.Millisecond)
		requireOnce(t, c, topic, 1, n)
		require.Zero(t, p.Stats().Identities)
	})
}

// One that takes the batch, gets it onto every replica and never says so has its batches recognised by its successor.
func TestProducerIsRecognisedByTheSuccessorOfASilentLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.script = func(n int, p *fakeProduce) verdict { return verdict{mute: n > 100 && p.broker.node == "n1"} }
		p, err := cl.NewProducer("orders", WithLinger(time.Millisecond))
		require.NoError(t, err)
		s := sendSteadily(t, p)
		time.Sleep(2 * time.Second) // the range has five batches now whose acks were lost
		c.freeze("n1", true)
		time.Sleep(time.Second)
		c.move(topic, 1, "n2")
		time.Sleep(time.Second)
		n, _ := s.finish(t, p)
		requireOnce(t, c, topic, 1, n)
		require.Zero(t, p.Stats().Identities)
	})
}

// A leader that is slow but alive is not left: it answers its pings.
func TestProducerStaysWithALeaderThatIsOnlySlow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		hold := make(chan struct{})
		c.mu.Lock()
		c.script = func(int, *fakeProduce) verdict { return verdict{hold: hold} }
		c.mu.Unlock()
		time.AfterFunc(5*time.Second, func() { close(hold) })
		began := time.Now()
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.EqualValues(t, 2, p.Stats().Tries, "nothing was sent twice")
		c.mu.Lock()
		require.Less(t, len(c.asked[wire.KindRoute]), 30, "though others were asked whether it leads")
		c.mu.Unlock()
		requireOnce(t, c, topic, 1, 2)
		require.NoError(t, p.Close(t.Context()))
	})
}

// A leader that is cut off from the other nodes answers pings, and tells what it used to know. The others are asked.
func TestProducerLeavesALeaderThatIsCutOff(t *testing.T) {
	for _, delivery := range []time.Duration{DefaultDeliveryTimeout, 4 * time.Second, 700 * time.Millisecond} {
		t.Run(delivery.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				p, err := cl.NewProducer("orders", WithLinger(0), WithDeliveryTimeout(delivery))
				require.NoError(t, err)
				_, err = p.Send(t.Context(), Record{Value: value(0)})
				require.NoError(t, err)
				c.cut("n1", topic)
				const takes = 2200 * time.Millisecond
				time.AfterFunc(takes, func() { c.move(topic, 1, "n2") })
				began := time.Now()
				for {
					if _, err = p.Send(t.Context(), Record{Value: value(1)}); err == nil {
						break
					}
					require.Less(t, delivery, takes, "no error reaches who has time: %v", err)
				}
				// Who sends anew because its time is up waits anew before it asks others.
				require.LessOrEqual(t, time.Since(began), takes+min(delivery, stuckAfter)+2*lookEvery+2*moveBackoff.cap)
				requireOnce(t, c, topic, 1, 2)
				require.NoError(t, p.Close(t.Context()))
			})
		})
	}
}

// Redirects are followed at once, several in a row too.
func TestProducerFollowsRedirectsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.start("n3")
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		for i := range 50 {
			c.move(topic, 1, []base.NodeID{"n1", "n2", "n3"}[i%3])
			began := time.Now()
			_, err = p.Send(t.Context(), Record{Value: value(i)})
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), moveBackoff.base)
		}
		requireOnce(t, c, topic, 1, 50)
		require.NoError(t, p.Close(t.Context()))
	})
}

// While nobody can take the range's records they wait, and no error reaches the sender within the delivery timeout.
func TestProducerWaitsForALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders")
		require.NoError(t, err)
		s := sendSteadily(t, p)
		time.Sleep(time.Second)
		for i, code := range []base.Code{base.CodeNoLeader, base.CodeFenced, base.CodeNotLeader, base.CodeBusy, base.CodeDiskFull} {
			c.mu.Lock()
			c.script = func(int, *fakeProduce) verdict { return verdict{refuse: code} }
			c.mu.Unlock()
			time.Sleep(5 * time.Second)
			c.mu.Lock()
			c.script = nil
			tries := c.produce
			c.mu.Unlock()
			require.Less(t, tries, (i+1)*500, "a leader that refuses is not stormed")
			time.Sleep(2 * time.Second)
		}
		n, gap := s.finish(t, p)
		require.Less(t, gap, 7*time.Second)
		requireOnce(t, c, topic, 1, n)
	})
}
