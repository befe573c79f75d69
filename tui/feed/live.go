package feed

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// Options make a live feed.
type Options struct {
	// Connect makes a client. It must not wait for a broker: the first request does.
	Connect func(seeds []string) (Client, error)
	Seeds   []string
	// Context is the name that the operator has for the cluster.
	Context string
	// Version is that of the program.
	Version string
	// Guard runs each goroutine of the feed, so that a panic in it can be handled; nil: nothing does. The clients that
	// Connect makes have goroutines of their own.
	Guard task.Guard
	// Since is how far back events are asked for; 0 means 15 minutes.
	Since time.Duration
}

const (
	backoffFirst = 200 * time.Millisecond
	backoffMost  = 5 * time.Second
	askTimeout   = 5 * time.Second
	maxKnown     = 64
	pollOld      = 2 * time.Second // of brokers that are too old for streams
)

// Live watches a cluster until it is closed.
func Live(opts Options) Feed {
	if opts.Since == 0 {
		opts.Since = 15 * time.Minute
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &live{
		opts: opts, out: make(chan store.Message, queueLength), cancel: cancel, seeds: opts.Seeds,
		retry: make(chan struct{}, 1), moved: make(chan struct{}),
	}
	l.running.Add(1)
	go opts.Guard.Run(func() {
		defer l.running.Done()
		l.run(ctx)
	})
	return l
}

type live struct {
	opts    Options
	out     chan store.Message
	cancel  context.CancelFunc
	running sync.WaitGroup
	retry   chan struct{}

	mu    sync.Mutex
	seeds []string
	shown Viewport
	moved chan struct{}      // closed and replaced when the screen shows something else
	leave context.CancelFunc // ends the client of now, for another
	known []string           // addresses of the last membership: tried before the seeds
}

func (l *live) Messages() <-chan store.Message { return l.out }
func (l *live) Now() time.Time                 { return time.Now() }

// Err is nil: whatever becomes of the cluster is a message.
func (l *live) Err() error { return nil }

func (l *live) Close() error {
	l.cancel()
	l.running.Wait()
	return nil
}

func (l *live) Show(v Viewport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = v
	close(l.moved)
	l.moved = make(chan struct{})
}

// viewport is what is shown, and a channel that is closed when that has changed.
func (l *live) viewport() (Viewport, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown, l.moved
}

// Retry begins anew: with what answers as well, which then tells everything again.
func (l *live) Retry() {
	l.mu.Lock()
	if l.leave != nil {
		l.leave()
	}
	l.mu.Unlock()
	select {
	case l.retry <- struct{}{}:
	default:
	}
}

func (l *live) SetSeeds(seeds []string) {
	l.mu.Lock()
	l.seeds, l.known = seeds, nil
	l.mu.Unlock()
	l.Retry()
}

// run has one client after the other: another one each time other seeds are given, or the one there was is of no use.
func (l *live) run(ctx context.Context) {
	defer close(l.out)
	for tries := 0; ctx.Err() == nil; {
		clientCtx, leave := context.WithCancel(ctx)
		l.mu.Lock()
		seeds := l.addresses()
		l.leave = leave
		l.mu.Unlock()
		client, err := l.opts.Connect(seeds)
		if err == nil {
			s := &session{l: l, client: client, seeds: seeds, members: make(map[sdk.NodeID]member)}
			err = s.run(clientCtx, &tries)
			_ = client.Close() // what it was asked for has ended
		}
		asked := clientCtx.Err() != nil // to begin anew, with other seeds perhaps
		leave()
		if ctx.Err() != nil {
			return
		}
		if asked {
			select {
			case <-l.retry: // this is it
			default:
			}
			continue
		}
		l.lost(ctx, seeds, err, &tries)
	}
}

// addresses are all that may lead to the cluster, each once. l.mu is held.
func (l *live) addresses() []string {
	all := slices.Clone(l.known)
	for _, s := range l.seeds {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// learn remembers where the members are.
func (l *live) learn(nodes []sdk.NodeStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
	for _, n := range nodes[:min(len(nodes), maxKnown)] {
		if n.Address != "" && n.State != "left" {
			l.known = append(l.known, n.Address)
		}
	}
}

// lost says that no broker answers, and waits for the next try.
func (l *live) lost(ctx context.Context, tried []string, err error, tries *int) {
	*tries++
	wait := backoff(*tries)
	conn := &store.Conn{Lost: true, Tried: tried, Attempt: *tries, Next: time.Now().Add(wait)}
	if err != nil {
		conn.Error = reason(err)
	}
	if l.send(ctx, store.Message{Conn: conn}) {
		l.pause(ctx, wait)
	}
}

// backoff grows from 200 ms to 5 s, with jitter.
func backoff(tries int) time.Duration {
	wait := backoffMost
	if tries < 6 {
		wait = min(backoffFirst<<(tries-1), backoffMost)
	}
	return wait*3/4 + rand.N(wait/2)
}

// pause waits, unless it is to be tried at once.
func (l *live) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.retry:
	case <-ctx.Done():
	}
}

// send delivers a message. Whoever sends waits: what the nodes drop meanwhile is told as a gap.
func (l *live) send(ctx context.Context, m store.Message) bool {
	m.Time = time.Now()
	select {
	case l.out <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

// offer delivers an answer that a later one makes good for, if there is room. One that no broker gives is told of.
func (l *live) offer(what string, m store.Message) {
	m = checked(what, m)
	m.Time = time.Now()
	select {
	case l.out <- m:
	default:
	}
}

// checked is the message, or that it was refused.
func checked(what string, m store.Message) store.Message {
	if err := check(&m); err != nil {
		return store.Message{Refused: &store.Refused{What: what, Why: err.Error()}}
	}
	return m
}
