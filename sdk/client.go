package sdk

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
)

// Client is the door to one cluster: connections, routes, and the producers, consumers and Admin that use them.
// It may be used by any number of goroutines.
type Client struct {
	cfg     clientConfig
	group   *task.Group // every goroutine of the client, its producers and consumers
	brokers *brokers
	topics  *topics
	leaders leaders
	salt    uint64 // of this client among others: which of several replicas that are equally near it reads from

	// maxRecord and maxBatch are the limits that the last handshake stated; 0 before the first.
	maxRecord atomic.Int64
	maxBatch  atomic.Int64

	mu struct {
		sync.Mutex
		closed bool
		users  map[closer]struct{} // producers and consumers that Close must end
	}
}

type closer interface{ abort() }

// NewClient makes a client. It connects to nobody before it is used.
func NewClient(opts ...ClientOption) (*Client, error) {
	cfg, err := newClientConfig(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, salt: mathrand.Uint64(), group: cfg.guard.NewGroup(context.Background(), "sdk")}
	c.brokers = newBrokers(c)
	c.topics = newTopics(c)
	c.mu.users = make(map[closer]struct{})
	return c, nil
}

// Close ends the client with its producers and consumers and waits for their goroutines. Records that are not
// acknowledged yet fail: close the producers first to have them delivered. It may be called more than once, and not
// from a callback, for which it would wait.
func (c *Client) Close() error {
	c.mu.Lock()
	c.mu.closed = true
	users := make([]closer, 0, len(c.mu.users))
	for u := range c.mu.users {
		users = append(users, u)
	}
	c.mu.Unlock()

	// Producers and consumers end before the connections do: a connection that closes under a producer would make
	// it call what it never sent a lost answer.
	for _, u := range users {
		u.abort()
	}
	c.brokers.close()
	return c.group.Close()
}

// register makes Close end u.
func (c *Client) register(u closer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return errClosed("client")
	}
	c.mu.users[u] = struct{}{}
	return nil
}

func (c *Client) unregister(u closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.users, u)
}

// Admin is the client's access to topics and cluster.
func (c *Client) Admin() *Admin { return &Admin{c: c} }

// errClosed is what the methods of a closed client, producer or consumer return.
func errClosed(what string) *base.Error {
	return base.Errorf(base.CodeShuttingDown, "use "+what, "the %s is closed", what)
}

// newRequestID names one metadata change; its retries carry the same id, so that it happens once.
func newRequestID() base.RequestID {
	id, err := base.NewUUID(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand.Reader never fails; see its documentation
	}
	return id
}

// ignore is for the errors of closing what has failed already.
func ignore(error) error { return nil }
