package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func ignoreAnswer(mux.Response, error) {}

// refused starts a broker that must not come up, and returns the one line that it says.
func refused(t *testing.T, fs vfs.FS, edit func(*config.Config)) *base.Error {
	t.Helper()
	cfg := testConfig()
	edit(&cfg)
	s, err := New(cfg, Deps{FS: fs, Logger: testLogger(t)})
	require.NoError(t, err)
	err = s.Start(t.Context())
	require.Error(t, err)
	require.NoError(t, s.Close())
	var e *base.Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, e.Error(), "\n")
	require.NotEmpty(t, e.HintText())
	return e
}

func TestStartRefusals(t *testing.T) {
	t.Run("bootstrap false", func(t *testing.T) {
		no := false
		refused(t, vfs.NewMem(), func(c *config.Config) { c.Bootstrap = &no })
	})
	t.Run("port in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		mem := vfs.NewMem()
		port := l.Addr().(*net.TCPAddr).Port
		e := refused(t, mem, func(c *config.Config) { c.ClientPort = port })
		require.Contains(t, e.Error(), "in use")
		made, err := mem.ReadDir("/")
		require.NoError(t, err)
		require.Empty(t, made, "it was told before anything was created")
		start(t, mem) // and it left nothing behind that would keep the next start from succeeding
	})
	t.Run("two brokers on one directory", func(t *testing.T) {
		mem := vfs.NewMem()
		start(t, mem)
		refused(t, mem, func(*config.Config) {})
	})
	t.Run("another node's directory", func(t *testing.T) {
		mem := vfs.NewMem()
		n := start(t, mem)
		n.stop()
		refused(t, mem, func(c *config.Config) { c.NodeID = "n2" })
		n.boot()
	})
	t.Run("lost meta directory", func(t *testing.T) {
		mem := vfs.NewMem()
		n := start(t, mem)
		n.stop()
		refused(t, mem, func(c *config.Config) { c.MetaDir = "/elsewhere" })
		n.boot()
	})
}

func TestWrongClusterIsTold(t *testing.T) {
	n := start(t, vfs.NewMem())
	_, err := mux.Dial(t.Context(), n.Addr(), mux.ClientOptions{Hello: wire.HelloRequest{Cluster: base.ClusterID{1}}})
	require.ErrorIs(t, err, base.CodeDenied)
	h := n.conn.Hello()
	require.Equal(t, n.id.Cluster, h.Cluster)
	require.EqualValues(t, 1<<20, h.MaxRecordBytes)
	require.GreaterOrEqual(t, h.MaxBatchBytes, h.MaxRecordBytes)
}

func TestCloseTwiceAndWithoutStart(t *testing.T) {
	s, err := New(testConfig(), Deps{FS: vfs.NewMem()})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	n := start(t, vfs.NewMem())
	n.stop()
	require.NoError(t, n.Close())
	n.boot()
}

func TestDiskFailureIsFatal(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	n := &node{t: t, fs: fault, cfg: testConfig()}
	n.boot()
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a")
	fault.Add(vfs.Rule{Ops: vfs.OpSyncs, Path: "/data/wal/*", Err: errors.New("i/o error")})
	_, _, err := call[wire.ProduceResponse](n, wire.KindProduce, wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, TimeoutMs: 300}, makeBatch(t, -1, -1, "b"))
	require.Error(t, err)
	require.NotEqual(t, base.Applied, base.OutcomeOf(err), "what the committed end leaves out is not applied, else nobody knows: %v", err)
	require.Error(t, <-n.Fatal())
	require.NoError(t, n.conn.Close())
	require.Error(t, n.Close(), "the process would have exited by now; a close says why it was not clean")
}

func TestErrorsSayWhatToDo(t *testing.T) {
	n := start(t, vfs.NewMem())
	_, _, err := call[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Name: "nope"})
	require.True(t, strings.Contains(err.Error(), "nope"), err)
}

// A start that was given up begins no further step.
func TestAStartThatWasGivenUpEnds(t *testing.T) {
	fs := vfs.NewMem()
	s, err := New(testConfig(), Deps{FS: fs, Logger: testLogger(t)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Start(ctx), context.Canceled)
	require.NoError(t, s.Close())
	entries, err := fs.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries, "it was not even counted")
}
