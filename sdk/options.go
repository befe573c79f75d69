package sdk

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
)

// Defaults of the client's options.
const (
	DefaultSeed           = "127.0.0.1:2921"
	DefaultDialTimeout    = 5 * time.Second
	DefaultRequestTimeout = 10 * time.Second
)

// DialFunc opens a connection to addr, which is host:port.
type DialFunc func(ctx context.Context, addr string) (net.Conn, error)

// ClientOption configures NewClient.
type ClientOption interface{ applyClient(*clientConfig) }

type clientOption func(*clientConfig)

func (o clientOption) applyClient(c *clientConfig) { o(c) }

type clientConfig struct {
	seeds          []string
	name           string
	rack           string
	dial           DialFunc
	logger         *slog.Logger
	dialTimeout    time.Duration
	requestTimeout time.Duration
	guard          task.Guard
}

// WithSeeds names the brokers to start from, as host:port; a bare host gets port 2921. They are only a start: the
// client learns the other brokers from the answers. Default: 127.0.0.1:2921.
func WithSeeds(addrs ...string) ClientOption {
	return clientOption(func(c *clientConfig) { c.seeds = append(c.seeds, addrs...) })
}

// WithName names this client in the brokers' logs. Default: eastguard-go.
func WithName(name string) ClientOption {
	return clientOption(func(c *clientConfig) { c.name = name })
}

// WithRack says where this client is, in the words of the brokers' own rack settings: consumers read from replicas in
// the same rack first. Default: none, every rack is alike.
func WithRack(rack string) ClientOption {
	return clientOption(func(c *clientConfig) { c.rack = rack })
}

// WithDialer replaces how connections are opened, for tests and proxies. The default dials TCP and, for a name
// with addresses of both families, starts the second family 300 ms after the first; the name is resolved anew at
// each dial.
func WithDialer(dial DialFunc) ClientOption {
	return clientOption(func(c *clientConfig) { c.dial = dial })
}

// WithLogger sets where the client logs connection trouble and metadata changes. Default: nowhere.
func WithLogger(l *slog.Logger) ClientOption {
	return clientOption(func(c *clientConfig) { c.logger = l })
}

// WithDialTimeout bounds one attempt to connect, the handshake included. Default: 5 s.
func WithDialTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *clientConfig) { c.dialTimeout = d })
}

// WithRequestTimeout bounds an Admin call, its retries included, when the caller's context has no deadline of its
// own. Default: 10 s.
func WithRequestTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *clientConfig) { c.requestTimeout = d })
}

// WithGuard runs every goroutine of the client, its producers and consumers inside guard, which calls run once, there and
// then. It is for a program that has something to put back before a panic may end it, a terminal say: guard recovers. A
// client of which a goroutine has panicked is not to be used any more, nor closed, for it may wait for itself. Callbacks
// run inside guard where they run on the client's goroutines. Default: none; a panic ends the process, as Go does it.
func WithGuard(guard func(run func())) ClientOption {
	return clientOption(func(c *clientConfig) { c.guard = guard })
}

// newClientConfig applies opts over the defaults and says what cannot be.
func newClientConfig(opts []ClientOption) (clientConfig, error) {
	c := clientConfig{
		name: "eastguard-go", dialTimeout: DefaultDialTimeout, requestTimeout: DefaultRequestTimeout,
		logger: slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		o.applyClient(&c)
	}
	return c, c.validate()
}

func (c *clientConfig) validate() error {
	const op = "new client"
	if len(c.seeds) == 0 {
		c.seeds = []string{DefaultSeed}
	}
	for i, s := range c.seeds {
		addr, err := withDefaultPort(s)
		if err != nil {
			return about(op, err)
		}
		c.seeds[i] = addr
	}
	if c.dial == nil {
		c.dial = dialTCP
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.dialTimeout <= 0 || c.requestTimeout <= 0 {
		return base.Errorf(base.CodeInvalidArgument, op, "the dial timeout (%v) and the request timeout (%v) must be positive", c.dialTimeout, c.requestTimeout)
	}
	return nil
}

// withDefaultPort makes host:port of host, host:port, [v6], [v6]:port and a bare IPv6 literal.
func withDefaultPort(s string) (string, error) {
	const port = "2921"
	if s == "" {
		return "", base.Errorf(base.CodeInvalidArgument, "parse seed", "a seed cannot be empty")
	}
	literal := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		literal = s[1 : len(s)-1]
	}
	if ip := net.ParseIP(literal); ip != nil {
		return net.JoinHostPort(literal, port), nil
	}
	if !strings.Contains(s, ":") {
		return net.JoinHostPort(s, port), nil
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil || host == "" || p == "" {
		return "", base.Errorf(base.CodeInvalidArgument, "parse seed", "%q is not host:port", s)
	}
	if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
		return "", base.Errorf(base.CodeInvalidArgument, "parse seed", "%q is not host:port: the port is a number from 1 to 65535", s)
	}
	return net.JoinHostPort(host, p), nil
}

// dialTCP is the default dialer. net.Dialer resolves the name anew each time and races the address families.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
