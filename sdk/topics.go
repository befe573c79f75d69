package sdk

import (
	"context"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// route is a topic as the metadata had it at one version. It never changes; a newer one takes its place.
type route struct {
	wire.TopicRoute
	active  []*wire.RangeRoute // by span
	byRange map[base.RangeID]*wire.RangeRoute
	address map[base.NodeID]string
}

func newRoute(t wire.TopicRoute) (*route, error) {
	r := &route{TopicRoute: t, byRange: make(map[base.RangeID]*wire.RangeRoute), address: make(map[base.NodeID]string)}
	var spans []keyspace.Span
	for i := range r.Ranges {
		rr := &r.Ranges[i]
		r.byRange[rr.ID] = rr
		if rr.State == base.StateActive {
			r.active = append(r.active, rr)
			spans = append(spans, rr.Span)
		}
	}
	if err := keyspace.CheckCover(spans); err != nil {
		return nil, about("read route of topic "+t.Name, err)
	}
	sort.Slice(r.active, func(i, j int) bool { return r.active[i].Span.Start < r.active[j].Span.Start })
	for _, n := range t.Nodes {
		r.address[n.ID] = n.Address
	}
	return r, nil
}

// newerThan reports whether r should take old's place. Another id under the same name is another topic: whichever
// answer came last is believed, since versions of two topics do not compare.
func (r *route) newerThan(old *route) bool {
	return old == nil || r.ID != old.ID || r.Version > old.Version
}

// leader is the node that takes appends of a range, and its address; "" when the range has no active segment.
func (r *route) leader(id base.RangeID) (base.NodeID, string) {
	rr := r.byRange[id]
	if rr == nil || rr.Active == nil || len(rr.Active.Replicas) == 0 {
		return "", ""
	}
	n := rr.Active.Replicas[0]
	return n, r.address[n]
}

// rangeBounds is what the metadata knows of a range's offsets: where it begins and, once it is sealed, where it ends.
func rangeBounds(rr *wire.RangeRoute) bounds {
	b := bounds{Offset: rr.Earliest, Earliest: rr.Earliest}
	if rr.State == base.StateSealed {
		b.Sealed, b.Commit = true, max(rr.End, rr.Earliest)
	}
	return b
}

// topics caches the routes of the topics in use. Errors of the data path correct it: nothing expires by time.
type topics struct {
	c  *Client
	mu sync.Mutex
	m  map[string]*topic
}

// topic is one entry: the newest route, read without a lock, and the request that renews it.
type topic struct {
	c       *Client
	name    string
	current atomic.Pointer[route]

	mu sync.Mutex
	// call is the renewal under way, which everybody shares; nil when none is.
	call *renewal
	// failures counts renewals in a row that failed or brought nothing new, to space them out.
	failures int
	ended    time.Time
}

type renewal struct {
	done  chan struct{}
	route *route
	err   error
}

func newTopics(c *Client) *topics { return &topics{c: c, m: make(map[string]*topic)} }

// get is the entry of a name, made if need be.
func (ts *topics) get(name string) *topic {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.m[name]
	if t == nil {
		t = &topic{c: ts.c, name: name}
		ts.m[name] = t
	}
	return t
}

// drop forgets a name that has no topic, so that a caller that tries names does not grow the cache.
func (ts *topics) drop(t *topic) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.m[t.name] == t && t.current.Load() == nil {
		delete(ts.m, t.name)
	}
}

// route is the newest known, fetched when there is none.
func (t *topic) route(ctx context.Context) (*route, error) {
	if r := t.current.Load(); r != nil {
		return r, nil
	}
	return t.renew(ctx, nil)
}

// renew fetches the route unless a newer one than stale is there already: several users that meet the same error
// cause one request, and requests that bring nothing new are spaced out. It may return stale itself, when the
// metadata knows nothing newer.
func (t *topic) renew(ctx context.Context, stale *route) (*route, error) {
	t.mu.Lock()
	if r := t.current.Load(); r != nil && stale != nil && r.newerThan(stale) {
		t.mu.Unlock()
		return r, nil
	}
	delay := time.Until(t.ended.Add(moveBackoff.wait(t.failures)))
	return t.joinLocked(ctx, delay)
}

// fresh fetches the route now: not because the one there is has proved wrong, but because the caller is about to
// ask for the ranges as they are.
func (t *topic) fresh(ctx context.Context) (*route, error) {
	t.mu.Lock()
	return t.joinLocked(ctx, 0)
}

// begin is the route for whoever begins to use the topic: as it is now, for what is cached may be of a topic that was
// deleted, and made anew, since. When nobody answers, what is cached has to do.
func (t *topic) begin(ctx context.Context) (*route, error) {
	cached := t.current.Load()
	if cached == nil {
		return t.renew(ctx, nil)
	}
	r, err := t.fresh(ctx)
	if err != nil && base.CodeOf(err) != base.CodeTopicNotFound && ctx.Err() == nil {
		return cached, nil
	}
	return r, err
}

// joinLocked waits for the renewal under way, or begins one. It releases mu.
func (t *topic) joinLocked(ctx context.Context, delay time.Duration) (*route, error) {
	call := t.call
	if call == nil {
		call = &renewal{done: make(chan struct{})}
		started := t.c.group.Go("route", func(ctx context.Context) error {
			t.run(ctx, call, delay)
			return nil
		})
		if !started {
			t.mu.Unlock()
			return nil, errClosed("client")
		}
		t.call = call
	}
	t.mu.Unlock()

	select {
	case <-call.done:
		return call.route, call.err
	case <-ctx.Done():
		return nil, contextError(ctx, "find topic "+t.name, base.NotApplied)
	}
}

func (t *topic) run(ctx context.Context, call *renewal, delay time.Duration) {
	old := t.current.Load()
	if task.Pause(ctx, delay) {
		call.route, call.err = t.fetch(ctx)
	} else {
		call.err = errClosed("client")
	}

	t.mu.Lock()
	if time.Since(t.ended) > requestBackoff.cap {
		t.failures = 0 // what went on before is another story
	}
	t.call, t.ended = nil, time.Now()
	switch {
	case call.err != nil:
		t.failures++
	case call.route.newerThan(old):
		t.failures = 0
		t.current.Store(call.route)
	default:
		// An older or equal answer: a broker that is behind, or nothing has changed yet.
		t.failures++
		call.route = old
	}
	t.mu.Unlock()

	if base.CodeOf(call.err) == base.CodeTopicNotFound {
		t.current.Store(nil)
		t.c.topics.drop(t)
	}
	close(call.done)
}

func (t *topic) fetch(ctx context.Context) (*route, error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.cfg.requestTimeout)
	defer cancel()
	var resp wire.RouteResponse
	if err := t.c.ask(ctx, wire.KindRoute, wire.RouteRequest{Name: t.name}, &resp); err != nil {
		return nil, about("find topic "+t.name, err)
	}
	return newRoute(resp.Topic)
}
