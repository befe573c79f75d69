package sdktest

import (
	"context"
	"log/slog"
	"math/rand"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/server"
)

// startTimeout bounds one start of the broker.
const startTimeout = 30 * time.Second

// keepUnsynced is the part of the writes on their way to the disk that a Kill leaves.
const keepUnsynced = 0.5

// Broker is a running broker. Its methods may be called by one goroutine at a time, while clients use it from any.
type Broker struct {
	tb   testing.TB
	opts options
	cfg  config.Config
	mem  *vfs.Mem // nil with WithDisk
	rng  *rand.Rand
	addr string
	srv  *server.Server
	end  context.CancelFunc // of srv's context
	door *door
}

// Start runs a broker until the end of the test, which it fails if the broker does not start or stop.
func Start(tb testing.TB, opts ...Option) *Broker {
	tb.Helper()
	b := &Broker{tb: tb, opts: options{seed: 1}}
	for _, o := range opts {
		o(&b.opts)
	}
	b.rng = rand.New(rand.NewSource(int64(b.opts.seed)))
	b.cfg = config.Default()
	b.cfg.Host, b.cfg.AdvertiseHost = "127.0.0.1", "127.0.0.1"
	b.cfg.ClientPort, b.cfg.ClusterPort, b.cfg.DataPort, b.cfg.AdminPort = 0, 0, 0, 0
	b.cfg.NodeID, b.cfg.Shards, b.cfg.ReserveBytes = "n1", 4, 0
	b.cfg.CacheBudgetBytes = 8 << 20
	if b.opts.onDisk {
		dir := tb.TempDir()
		b.cfg.DataDir, b.cfg.MetaDir = dir+"/data", dir+"/meta"
	} else {
		b.mem = vfs.NewMem()
		b.cfg.DataDir, b.cfg.MetaDir = "/data", "/meta"
	}
	for _, edit := range b.opts.config {
		edit(&b.cfg)
	}
	if b.opts.logger == nil {
		b.opts.logger = slog.New(slog.NewTextHandler(testLog{tb}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	tb.Cleanup(b.Stop)
	b.boot()
	b.makeTopics()
	return b
}

// Addr is the broker's address, host:port. It stays the same when the broker is started again.
func (b *Broker) Addr() string { return b.addr }

// Client makes a client of the broker that is closed at the end of tb's test.
func (b *Broker) Client(tb testing.TB, opts ...sdk.ClientOption) *sdk.Client {
	tb.Helper()
	c, err := sdk.NewClient(append([]sdk.ClientOption{sdk.WithSeeds(b.addr)}, opts...)...)
	if err != nil {
		tb.Fatalf("sdktest: make client: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop ends the broker in good order. The test's end does it by itself.
func (b *Broker) Stop() {
	if b.srv == nil {
		return
	}
	srv := b.srv
	b.srv = nil
	defer b.end()
	if err := srv.Close(); err != nil {
		b.tb.Errorf("sdktest: stop broker: %v", err)
	}
}

// Restart stops the broker in good order and starts it on the same disk. After Stop it only starts it.
func (b *Broker) Restart() {
	b.tb.Helper()
	b.Stop()
	b.boot()
}

// Kill ends the broker as a power failure would and starts it on what is left of its disk: everything that it ever
// acknowledged, and a random part of what was on its way there.
func (b *Broker) Kill() {
	b.tb.Helper()
	if b.mem == nil {
		b.tb.Fatalf("sdktest: Kill needs the disk in memory; drop WithDisk")
	}
	// First no answer gets out any more, then the disk is looked at: an ack that a client has seen is of before.
	b.door.shut()
	left := b.mem.CrashClone(b.rng, keepUnsynced)
	b.Stop() // the old process goes on writing to a disk that nobody reads again
	b.mem = left
	b.boot()
}

// Disconnect breaks every connection to the broker, which goes on running.
func (b *Broker) Disconnect() { b.door.cut() }

func (b *Broker) boot() {
	b.tb.Helper()
	// The context is the broker's for life; only its start has a limit.
	ctx, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(startTimeout, cancel)
	b.door = nil
	deps := server.Deps{FS: vfs.OS, Logger: b.opts.logger, Version: "sdktest", Listen: b.listen}
	if b.mem != nil {
		deps.FS = b.mem
	}
	srv, err := server.New(b.cfg, deps)
	if err == nil {
		err = srv.Start(ctx)
	}
	late.Stop()
	if err != nil {
		cancel()
		b.tb.Fatalf("sdktest: start broker: %v", err)
	}
	b.srv, b.addr, b.end = srv, srv.Addr(), cancel
	if b.cfg.ClientPort == 0 {
		b.cfg.ClientPort = b.door.Listener.Addr().(*net.TCPAddr).Port // for the next start
	}
}

func (b *Broker) listen(network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if err != nil || b.door != nil { // the client port is the first to be bound, and the only one with a door
		return l, err
	}
	b.door = &door{Listener: l, open: make(map[net.Conn]struct{})}
	return b.door, nil
}

func (b *Broker) makeTopics() {
	b.tb.Helper()
	if len(b.opts.topics) == 0 {
		return
	}
	c, err := sdk.NewClient(sdk.WithSeeds(b.addr))
	if err != nil {
		b.tb.Fatalf("sdktest: make client: %v", err)
	}
	defer func() { _ = c.Close() }()
	for _, t := range b.opts.topics {
		if _, err := c.Admin().CreateTopic(context.Background(), sdk.CreateTopic{Name: t.name, Ranges: t.ranges}); err != nil {
			b.tb.Fatalf("sdktest: create topic %s: %v", t.name, err)
		}
	}
}

// door is the broker's listener, which can be slammed.
type door struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]struct{}
	shot bool
}

// Accept lets a connection in and remembers it.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shot {
		_ = c.Close()
		return c, nil
	}
	d.open[c] = struct{}{}
	return c, nil
}

// cut breaks the connections.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		_ = c.Close()
	}
	clear(d.open)
}

// shut lets nobody in any more, and breaks the connections.
func (d *door) shut() {
	d.mu.Lock()
	d.shot = true
	d.mu.Unlock()
	d.cut()
}

// testLog writes to the test's log while there is one.
type testLog struct{ tb testing.TB }

func (w testLog) Write(line []byte) (int, error) {
	if w.tb.Context().Err() == nil {
		w.tb.Logf("broker: %s", line)
	}
	return len(line), nil
}
