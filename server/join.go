package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// whoMessage asks an address which node is there and what cluster it knows.
type whoMessage struct{}

// whoAnswer is what a joiner needs: the cluster, and whom to ask there.
type whoAnswer struct {
	Cluster   base.ClusterID         `cbor:"1,keyasint,omitzero"` // zero: none yet
	Shards    int                    `cbor:"2,keyasint,omitempty"`
	Boot      uint64                 `cbor:"3,keyasint,omitempty"` // the last start that is known of the asker's node id
	Addresses map[base.NodeID]string `cbor:"4,keyasint,omitempty"` // of the cluster ports of living members
	Waits     string                 `cbor:"5,keyasint,omitempty"` // what it does while it knows no cluster
	Double    uint64                 `cbor:"6,keyasint,omitempty"` // the start of another process of the asker's node that is connected right now
	Key       []byte                 `cbor:"7,keyasint,omitempty"` // shows which key encrypts the membership; none: it is not encrypted
}

// keyCheck lets two nodes see whether they have the same cluster key, without telling it: with another one the new node
// would be admitted, and meet nobody.
func (s *Server) keyCheck(cluster base.ClusterID) []byte {
	if len(s.deps.ClusterKey) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, s.deps.ClusterKey)
	mac.Write(cluster[:])
	return mac.Sum([]byte{})[:16]
}

func (s *Server) checkKey(met *whoAnswer) error {
	if hmac.Equal(met.Key, s.keyCheck(met.Cluster)) {
		return nil
	}
	what := "another key"
	switch {
	case len(met.Key) == 0:
		what = "no key"
	case len(s.deps.ClusterKey) == 0:
		what = "a key, and this node has none"
	}
	return base.Errorf(base.CodePreconditionFailed, "find cluster", "cluster %s encrypts its membership with %s", met.Cluster, what).
		WithHint("give all nodes the same cluster_key_file, or none")
}

const (
	whoWithin  = time.Second // one question to one address
	askAtOnce  = 16
	roundFirst = 100 * time.Millisecond
	roundMost  = time.Second
	sayEvery   = 10 * time.Second // how often the log says what is waited for
	maxTold    = 64               // addresses of one answer
)

// findCluster ends when this node belongs to a cluster: the one it was in, one that it founds, or one that it joins.
func (s *Server) findCluster(ctx context.Context) error {
	ctx, done := s.untilHalted(ctx)
	defer done()
	fresh := s.host.Cluster().IsZero()
	if err := s.belong(ctx); err != nil {
		return err
	}
	if err := s.findDouble(ctx); err != nil || !fresh || len(s.members.known()) == 0 {
		return err
	}
	// A stranger that the root refuses, as one with the node id of another, is not to be seen by the others at all. If
	// the root cannot be asked yet, admission asks again.
	if err := s.register(ctx, s.registration()); turnedAway(err) {
		return err
	}
	return context.Cause(ctx)
}

func (s *Server) belong(ctx context.Context) error {
	const op = "find cluster"
	alone := s.cfg.Bootstrap == nil && len(s.cfg.JoinSeedNodes) == 0 || s.cfg.Bootstrap != nil && *s.cfg.Bootstrap
	switch {
	case s.host.Bootstrapped():
		return s.settle()
	case !s.host.Cluster().IsZero(): // a founding that was interrupted
		return s.found(ctx)
	case !s.id.Cluster.IsZero():
		return base.Errorf(base.CodeCorruptData, op, "the node is of cluster %s, but meta_dir %s holds none of its metadata", s.id.Cluster, s.cfg.MetaDir).
			WithHint("give the broker the meta_dir that it ran with")
	case alone && !s.id.Pledge.IsZero():
		return base.Errorf(base.CodePreconditionFailed, op, "this node has pledged to found a cluster with %s", s.id.Pledge.Minter).
			WithHint("set join_seed_nodes and bootstrap_expect as before, or start it with empty directories")
	case alone:
		s.idle("founds a cluster by itself")
		return s.foundAlone(ctx)
	case len(s.cfg.JoinSeedNodes) == 0:
		return base.Errorf(base.CodeInvalidArgument, op, "bootstrap is false and there is no cluster to join").
			WithHint("set bootstrap to true to found a cluster of one node, or join_seed_nodes to join one")
	case s.cfg.BootstrapExpect > 0:
		s.idle("has not resolved the names in its join_seed_nodes yet")
		return s.foundTogether(ctx)
	}
	s.idle("waits to join a cluster: neither bootstrap nor bootstrap_expect is set on it")
	return s.waitToJoin(ctx)
}

// idle says what this node does instead of pledging, as long as it does not.
func (s *Server) idle(why string) { s.founding.why.Store(&why) }

// settle makes data_dir and meta_dir say the same.
func (s *Server) settle() error {
	const op = "join cluster"
	cluster := s.host.Cluster()
	switch {
	case s.id.Cluster.IsZero(): // the first start ended between the two, or just now
		if err := s.id.SetCluster(s.deps.FS, s.cfg.DataDir, cluster); err != nil {
			return base.Wrap(base.CodeInternal, op, err)
		}
	case s.id.Cluster != cluster:
		return base.Errorf(base.CodePreconditionFailed, op, "data_dir belongs to cluster %s, meta_dir to %s", s.id.Cluster, cluster).
			WithHint("give the broker the two directories that belong together")
	}
	s.peers.SetCluster(cluster)
	return nil
}

// clusterID is the cluster this node belongs to; zero while it belongs to none.
func (s *Server) clusterID() base.ClusterID { return s.host.Cluster() }

// foundAlone founds a cluster of this node, unless a seed knows one: a configuration that says bootstrap for good must
// not make a second cluster when the disk was lost.
func (s *Server) foundAlone(ctx context.Context) error {
	search := newSearch(s)
	met, err := search.round(ctx)
	if err != nil {
		return err
	}
	if met != nil {
		return base.Errorf(base.CodePreconditionFailed, "found cluster", "bootstrap is true, but cluster %s is there already: a node of join_seed_nodes belongs to it", met.Cluster).
			WithHint("set bootstrap to false to join it, or remove join_seed_nodes to found another cluster")
	}
	return s.found(ctx)
}

// waitToJoin asks around until somebody knows a cluster.
func (s *Server) waitToJoin(ctx context.Context) error {
	search := newSearch(s)
	for {
		met, err := search.round(ctx)
		if err != nil {
			return err
		}
		if met != nil {
			return s.adopt(ctx, met)
		}
		if err := search.pause(ctx); err != nil {
			return err
		}
	}
}

// adopt makes this node, which belongs to no cluster, one of a cluster that exists. Each step may be repeated by the
// next start.
func (s *Server) adopt(ctx context.Context, met *whoAnswer) error {
	if err := s.neverPledge(ctx, met.Cluster); err != nil {
		return err
	}
	if err := s.checkKey(met); err != nil {
		return err
	}
	if met.Boot >= s.id.Boot { // a node id whose disk was replaced: its starts go on where they were
		if err := s.id.RaiseBoot(s.deps.FS, s.cfg.DataDir, s.cfg.MetaDir, met.Boot+1); err != nil {
			return err
		}
		s.store.RaiseBoot(s.id.Boot)
		s.peers.SetBoot(s.id.Boot)
	}
	if err := s.host.Adopt(met.Cluster, met.Shards); err != nil {
		return err
	}
	for node, addr := range met.Addresses {
		s.members.note(node, addr)
	}
	s.deps.Logger.Info("joining a cluster", "cluster", met.Cluster.String(), "shards", met.Shards)
	return s.settle()
}

// serveWho tells a joiner what it needs.
func (s *Server) serveWho(_ context.Context, r *peer.Request, _ whoMessage) (whoAnswer, error) {
	var a whoAnswer
	if st := s.peers.Liveness()[r.From.Node]; st.Status == peer.Reachable && st.Instance != r.From.Instance {
		a.Double = st.Boot
	}
	if !s.host.Bootstrapped() {
		a.Waits = s.progress.String()
		return a, nil
	}
	a.Cluster, a.Shards = s.host.Cluster(), s.host.Shards()
	a.Key = s.keyCheck(a.Cluster)
	a.Addresses = map[base.NodeID]string{s.id.Node: s.self.gossip.String()}
	if n := s.members.nodeTable().node(r.From.Node); n != nil {
		a.Boot = n.Boot
	}
	if agent := s.members.agent.Load(); agent != nil {
		snapshot := agent.Snapshot()
		for i := range snapshot.Members {
			if m := &snapshot.Members[i]; m.Liveness == topology.Alive && len(a.Addresses) < maxTold {
				a.Addresses[m.Node] = m.Address
			}
		}
	}
	return a, nil
}

// callAddr asks whoever is at an address.
func callAddr[A any](ctx context.Context, p *peer.Host, addr string, kind peer.Kind, msg any) (who peer.Hello, answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, whoWithin)
	defer cancel()
	who, b, err := p.CallAddr(ctx, addr, kind, wire.Encode(msg))
	if err != nil {
		return who, answer, err
	}
	return who, answer, wire.Decode(b, &answer)
}

// search is the asking around of a node without a cluster.
type search struct {
	s       *Server
	aliases map[string]bool // addresses of the list that are this node's own
	rounds  int
	said    time.Time

	mu    sync.Mutex
	notes map[string]string // by address, what is in the way
	waits string
}

func newSearch(s *Server) *search {
	return &search{s: s, aliases: make(map[string]bool), notes: make(map[string]string)}
}

// round asks every seed once, and everybody whose address is known from before, side by side. It returns the first
// cluster that somebody knows. An error ends the search: clusters that differ, or a double of this node.
func (f *search) round(ctx context.Context) (*whoAnswer, error) {
	var addrs []string
	for _, seed := range f.s.cfg.JoinSeedNodes {
		found, err := f.s.resolveSeed(ctx, seed)
		if err != nil {
			f.note(seed, err)
		}
		for _, a := range found {
			addrs = append(addrs, a.String())
		}
	}
	addrs = append(addrs, f.s.members.known()...)
	slices.Sort(addrs)
	addrs = slices.DeleteFunc(slices.Compact(addrs), func(a string) bool { return f.aliases[a] || a == f.s.self.gossip.String() })

	answers := make([]*whoAnswer, len(addrs))
	slots := make(chan struct{}, askAtOnce)
	var asking sync.WaitGroup
	for i, addr := range addrs {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = f.ask(ctx, addr)
		})
	}
	asking.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var met *whoAnswer
	for _, a := range answers {
		switch {
		case a == nil || a.Cluster.IsZero():
		case met == nil:
			met = a
		case met.Cluster != a.Cluster:
			return nil, base.Errorf(base.CodePreconditionFailed, "find cluster", "the seeds belong to different clusters: %s and %s", met.Cluster, a.Cluster).
				WithHint("name nodes of one cluster in join_seed_nodes")
		}
	}
	return met, nil
}

func (f *search) ask(ctx context.Context, addr string) *whoAnswer {
	who, answer, err := callAddr[whoAnswer](ctx, f.s.peers, addr, kindWho, whoMessage{})
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case who.Instance == f.s.instance:
		f.aliases[addr] = true
		delete(f.notes, addr)
		return nil
	case err != nil:
		f.notes[addr] = inTheWay(err)
		return nil
	}
	f.notes[addr] = fmt.Sprintf("node %s: %s", who.Node, answer.Waits)
	return &answer
}

func (f *search) note(addr string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes[addr] = inTheWay(err)
}

// inTheWay is why a seed did not answer, for who has to mend the list: without the names that the messages have here, and
// with what is mostly meant by an answer that makes no sense, or none.
func inTheWay(err error) string {
	var e *base.Error
	for next := err; errors.As(next, &e); next = e.Err {
		err = e
	}
	text := err.Error()
	if e, ok := err.(*base.Error); ok {
		text = (&base.Error{Code: e.Code, Msg: e.Msg}).Error()
	}
	switch {
	case base.CodeOf(err) == base.CodeCorruptFrame:
		return "it speaks another protocol (" + text + "): name the node's cluster_port"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "it does not answer (" + text + "): name the node's cluster_port"
	}
	return text
}

func (f *search) waitsFor(what string) { f.waits = what }

// pause waits for the next round, longer each time, and says now and then what is waited for.
func (f *search) pause(ctx context.Context) error {
	f.report()
	bound := min(roundMost, roundFirst<<min(f.rounds, 8))
	f.rounds++
	if !task.Pause(ctx, bound/2+rand.N(bound/2)) {
		return context.Cause(ctx)
	}
	return nil
}

func (f *search) report() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, addr := range slices.Sorted(maps.Keys(f.notes)) {
		lines = append(lines, addr+": "+f.notes[addr])
	}
	what := "waits for a cluster to join"
	if f.waits != "" {
		what = f.waits
	}
	f.s.progress.enter(what)
	if now := time.Now(); f.rounds == 3 || f.rounds > 3 && now.Sub(f.said) >= sayEvery {
		f.said = now
		f.s.deps.Logger.Warn("no cluster yet", "waits_for", what, "seeds", strings.Join(lines, "; "))
	}
}

// untilHalted ends ctx when this process must not go on.
func (s *Server) untilHalted(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.halt, func() { cancel(context.Cause(s.halt)) })
	return ctx, func() { stop(); cancel(errors.New("done")) }
}
