package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// The schedule of hashicorp/raft #695: a leader of term T is about to append (here, a change of its configuration), when
// a heartbeat of the leader of T+1 arrives. Handled at that very moment, it raises the term under the append: the entry
// is stored under T+1, a term that its writer does not lead, where the real leader of T+1 has another entry. Both have
// the same index and term, so nobody will ever notice.
//
// The last thing that raft does before it reads its term is to log this:
const beforeTheAppend = "updating configuration"

// stopper holds up whoever logs a certain line, once armed.
type stopper struct {
	armed   atomic.Bool
	stopped chan struct{} // closed when somebody has been stopped
	goOn    chan struct{}
}

func newStopper() *stopper {
	return &stopper{stopped: make(chan struct{}), goOn: make(chan struct{})}
}

func (s *stopper) line(text string) {
	if strings.Contains(text, beforeTheAppend) && s.armed.CompareAndSwap(true, false) {
		close(s.stopped)
		<-s.goOn
	}
}

// Write lets a logger of raft's own write to it.
func (s *stopper) Write(b []byte) (int, error) {
	s.line(string(b))
	return len(b), nil
}

// A stopper is a slog.Handler as well.
func (s *stopper) Enabled(context.Context, slog.Level) bool { return true }
func (s *stopper) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *stopper) WithGroup(string) slog.Handler            { return s }
func (s *stopper) Handle(_ context.Context, r slog.Record) error {
	s.line(r.Message)
	return nil
}

// deaf is the library's TCP transport, which can be kept from sending.
type deaf struct {
	*raft.NetworkTransport
	cut atomic.Bool
}

var errCut = errors.New("cut off")

func (d *deaf) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if d.cut.Load() {
		return errCut
	}
	return d.NetworkTransport.AppendEntries(id, target, args, resp)
}

func (d *deaf) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

type noState struct{}

func (noState) Apply(*raft.Log) any                 { return nil }
func (noState) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("none") }
func (noState) Restore(r io.ReadCloser) error       { return r.Close() }

// libraryCluster is three rafts on the library's TCP transport.
type libraryCluster struct {
	rafts      []*raft.Raft
	stores     []*raft.InmemStore
	transports []*deaf
	members    raft.Configuration
}

func newLibraryCluster(t *testing.T, stop *stopper) *libraryCluster {
	l := &libraryCluster{}
	for i := range 3 {
		trans, err := raft.NewTCPTransport("127.0.0.1:0", nil, 4, 5*time.Second, io.Discard)
		require.NoError(t, err)
		l.transports = append(l.transports, &deaf{NetworkTransport: trans})
		l.members.Servers = append(l.members.Servers, raft.Server{ID: raft.ServerID(nodes(3)[i]), Address: trans.LocalAddr()})
	}
	for i, trans := range l.transports {
		c := raft.DefaultConfig()
		c.LocalID = l.members.Servers[i].ID
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout, c.CommitTimeout = 400*time.Millisecond, 400*time.Millisecond, 400*time.Millisecond, 20*time.Millisecond
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: io.Discard})
		if i == 0 {
			c.Logger = hclog.New(&hclog.LoggerOptions{Output: stop, Level: hclog.Info})
		}
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		require.NoError(t, raft.BootstrapCluster(c, store, store, snapshots, trans, l.members))
		r, err := raft.NewRaft(c, noState{}, store, store, snapshots, trans)
		require.NoError(t, err)
		l.rafts, l.stores = append(l.rafts, r), append(l.stores, store)
	}
	return l
}

func (l *libraryCluster) close(t *testing.T) {
	for i, r := range l.rafts {
		require.NoError(t, r.Shutdown().Error())
		require.NoError(t, l.transports[i].Close())
		l.transports[i].CloseStreams()
	}
}

// diverge runs the schedule, and reports how the logs of the first node and the new leader differ; "" if they agree. ok
// is false when the machine was too slow for it: the first node lost its leadership by itself.
func (l *libraryCluster) diverge(t *testing.T, stop *stopper) (difference string, ok bool) {
	first := l.rafts[0]
	// Whoever leads hands over to the first node, which alone can be stopped.
	eventually(t, func() bool {
		for _, r := range l.rafts[1:] {
			if r.State() == raft.Leader {
				_ = r.LeadershipTransferToServer(l.members.Servers[0].ID, l.members.Servers[0].Address).Error()
			}
		}
		return first.State() == raft.Leader && first.Barrier(time.Second).Error() == nil
	})
	old := first.CurrentTerm()
	stop.armed.Store(true)
	failed := make(chan error, 1)
	go func() { failed <- first.AddNonvoter("n9", "127.0.0.1:1", 0, 0).Error() }()
	select {
	case <-stop.stopped:
	case <-failed:
		return "", false
	}
	if first.CurrentTerm() != old {
		close(stop.goOn)
		return "", false
	}
	l.transports[0].cut.Store(true) // the others miss its heartbeats and elect another
	// Whose heartbeat is handled although the main loop stands still in the middle of something.
	eventually(t, func() bool { return first.CurrentTerm() > old })
	close(stop.goOn)
	require.Error(t, <-failed)
	leader := -1
	eventually(t, func() bool {
		leader = slices.IndexFunc(l.rafts, func(r *raft.Raft) bool { return r.State() == raft.Leader && r.Barrier(time.Second).Error() == nil })
		return leader > 0
	})
	last, err := l.stores[leader].LastIndex()
	require.NoError(t, err)
	for i := uint64(1); i <= last; i++ {
		var a, b raft.Log
		if l.stores[0].GetLog(i, &a) == nil && l.stores[leader].GetLog(i, &b) == nil && a.Term == b.Term && a.Type != b.Type {
			return fmt.Sprintf("entry %d of term %d is %s on the old leader and %s on the new one", i, a.Term, a.Type, b.Type), true
		}
	}
	return "", true
}

// TestTheLibrarysTransportDiverges is a canary. It shows, with the library's own transport, why ours must not hand
// heartbeats to raft beside its main loop. Should it fail one day, the library has been mended: then look again at
// transport.SetHeartbeatHandler.
func TestTheLibrarysTransportDiverges(t *testing.T) {
	tried := 0
	for range 10 { // an election too many, on a slow machine, and the terms differ as they should
		stop := newStopper()
		l := newLibraryCluster(t, stop)
		difference, ok := l.diverge(t, stop)
		l.close(t)
		if difference != "" {
			t.Log(difference)
			return
		}
		if ok {
			tried++
		}
	}
	require.Zero(t, tried, "the schedule does no harm any more")
}

// TestOursDoesNot: the same schedule over our transport. The heartbeat waits for the main loop, like everything else.
func TestOursDoesNot(t *testing.T) {
	var stop *stopper // of the bubble
	synctestPlant(t, 3, 1, func(o *Options) {
		if o.Node == "n1" {
			stop = newStopper()
			o.Logger = slog.New(stop)
		}
	}, func(t *testing.T, p *plant) {
		p.seatAll()
		p.create(1)
		p.converge()
		g := other(p.nodes["n1"].host, base.RootShard)
		old := g.raft.CurrentTerm()
		stop.armed.Store(true)
		change := g.raft.AddNonvoter(raft.ServerID("00000000-0000-0000-0000-000000000009"), "n9", 0, 0)
		<-stop.stopped
		p.isolate("n1")
		p.awaitLeaders(5*time.Second, "n2", "n3")
		p.create(2, "n2", "n3")
		p.network.Heal()
		before := p.nodes["n1"].peers.Stats().FramesIn
		time.Sleep(3 * time.Second) // the new leader's heartbeats arrive
		require.Greater(t, p.nodes["n1"].peers.Stats().FramesIn, before)
		require.Equal(t, old, g.raft.CurrentTerm(), "and wait")
		close(stop.goOn)
		require.Error(t, change.Error())
		p.converge()
		require.Greater(t, g.raft.CurrentTerm(), old)
		require.True(t, p.has(1))
		require.True(t, p.has(2))
	})
}
