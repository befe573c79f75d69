package cli

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// Deps is what a front end brings: streams, environment, clock and the way to a cluster. Tests replace any of it.
type Deps struct {
	IO      *term.IOStreams
	Getenv  func(string) string
	Now     func() time.Time
	Version string
	// Connect makes a client. It must not wait for a broker: the first request does.
	Connect func(Target) (Client, error)
	// DumpSegment reads segment files, for segment dump; nil leaves the command without it.
	DumpSegment SegmentDumper
	// Top runs the dashboard, for top; nil leaves the command without it.
	Top TopRunner
	// Extra adds commands that this package must not know, such as the terminal dashboard.
	Extra []func(*Session) *cobra.Command
	// Guard runs the goroutines of clients, and those of commands that ask many nodes at once: see sdk.WithGuard. The
	// dashboard brings one.
	Guard task.Guard
}

// Target says which cluster, and how patiently.
type Target struct {
	Seeds  []string
	Logger *slog.Logger
	Guard  task.Guard // of the client's goroutines
}

// Client is a cluster as the commands see it. Each command takes only the small interface it declares.
type Client interface {
	Admin() Admin
	NewProducer(topic string, opts ...sdk.ProducerOption) (Producer, error)
	NewConsumer(opts ...sdk.ConsumerOption) (Consumer, error)
	Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error]
	Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error]
	Close() error
}

// Admin is the sum of what the commands declare for themselves.
type Admin interface {
	topicCreator
	topicLister
	topicDescriber
	topicAlterer
	topicDeleter
	offsetFinder
	statusReader
	healthReader
	nodeLister
	nodeDescriber
	ringReader
	nodePinger
	nodeChanger
	shardLister
	shardDescriber
	shardLocator
	shardMover
	shardRecoverer
	keyRouter
	segmentLister
	segmentDescriber
	segmentSealer
}

// Producer is what publish and bench need of sdk.Producer.
type Producer interface {
	Send(ctx context.Context, r sdk.Record) (sdk.Ack, error)
	SendTraced(ctx context.Context, r sdk.Record) (sdk.Ack, sdk.Trace, error)
	SendAsync(r sdk.Record, done func(sdk.Ack, error)) error
	Flush(ctx context.Context) error
	Close(ctx context.Context) error
	Stats() sdk.ProducerStats
}

// Consumer is what consume and bench need of sdk.Consumer.
type Consumer interface {
	Poll(ctx context.Context) ([]sdk.Message, error)
	LastError() error
	Close() error
}

// Session is what outlives one command line: one client for each set of seeds, what :set and :use changed, and
// the names that completion has seen. One-shot use has a session of one line.
type Session struct {
	Deps

	mu      sync.Mutex
	clients map[string]Client

	overrides  overrides
	inherited  []inheritedFlag // flags of the front end's own line that hold for each of its commands
	configFlag string          // its --config
	names      nameCache
	asked      bool            // the command under way has used a client
	lost       bool            // the last one that did ended because no broker answered
	ended      bool            // the command under way follows, and has come to its normal end by Ctrl-C
	answered   time.Time       // when the last question of the command under way was answered
	atPrompt   bool            // lines come from a person who sees what they do
	at         string          // which command of a batch is under way, for its errors
	nested     int             // depth of :source and run, to stop a file that runs itself
	repl       replOptions     // what :set changed at the prompt
	history    func() []string // the prompt's history; nil elsewhere
}

// NewSession fills what deps leaves open.
func NewSession(deps Deps) *Session {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Connect == nil {
		deps.Connect = connectSDK
	}
	if deps.Version == "" {
		deps.Version = "dev"
	}
	return &Session{Deps: deps, clients: make(map[string]Client)}
}

// client returns the session's client for the target, making it the first time.
func (s *Session) client(t Target) (Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.Join(t.Seeds, ",")
	if c, ok := s.clients[key]; ok {
		return c, nil
	}
	c, err := s.Connect(t)
	if err != nil {
		return nil, err
	}
	s.clients[key] = c
	return c, nil
}

// Close closes every client. It may be called twice.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first error
	for key, c := range s.clients {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
		delete(s.clients, key)
	}
	return first
}

// connectSDK is Connect outside tests.
func connectSDK(t Target) (Client, error) {
	opts := []sdk.ClientOption{sdk.WithSeeds(slices.Clone(t.Seeds)...), sdk.WithName("eg-cli")}
	if t.Logger != nil {
		opts = append(opts, sdk.WithLogger(t.Logger))
	}
	if t.Guard != nil {
		opts = append(opts, sdk.WithGuard(t.Guard))
	}
	c, err := sdk.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return sdkClient{c}, nil
}

// sdkClient narrows sdk.Client to Client; Go does not do it for methods that return concrete types.
type sdkClient struct{ c *sdk.Client }

func (s sdkClient) Admin() Admin { return s.c.Admin() }
func (s sdkClient) Close() error { return s.c.Close() }

func (s sdkClient) NewProducer(topic string, opts ...sdk.ProducerOption) (Producer, error) {
	return s.c.NewProducer(topic, opts...)
}

func (s sdkClient) Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error] {
	return s.c.Watch(ctx, opts)
}

func (s sdkClient) Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error] {
	return s.c.Logs(ctx, opts)
}

func (s sdkClient) NewConsumer(opts ...sdk.ConsumerOption) (Consumer, error) {
	return s.c.NewConsumer(opts...)
}
