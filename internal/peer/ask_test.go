package peer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// A node asks an address without knowing who lives there, and without becoming anybody's neighbour.
func TestCallAddr(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("n1", func(o *Options) { o.Cluster = base.ClusterID{} })
		b := w.start("n2")
		who, got, err := a.CallAddr(t.Context(), address("n2"), kindEcho, []byte("who?"))
		require.NoError(t, err)
		require.Equal(t, "who?", string(got))
		require.Equal(t, base.NodeID("n2"), who.Node)
		require.Equal(t, testCluster, who.Cluster)
		synctest.Wait()
		require.Empty(t, a.Liveness())
		require.Empty(t, b.Liveness())
		require.Zero(t, w.network.Links())

		who, _, err = a.CallAddr(t.Context(), address("n1"), kindEcho, nil)
		require.Error(t, err)
		require.Equal(t, a.o.Instance, who.Instance, "it has asked itself")
		require.Empty(t, a.seenTwins())

		_, _, err = a.CallAddr(t.Context(), address("n2"), Control+99, nil)
		require.ErrorIs(t, err, base.CodeUnknownKind)
		_, _, err = a.CallAddr(t.Context(), address("n9"), kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))

		c := w.start("n3", func(o *Options) { o.Cluster = base.ClusterID{9} })
		who, _, err = c.CallAddr(t.Context(), address("n2"), kindEcho, nil)
		require.ErrorContains(t, err, "belongs to cluster")
		require.Equal(t, base.NodeID(""), who.Node)
	})
}

func TestCallAddrMeetsATwin(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("n1")
		l, err := w.network.Listen("elsewhere:2922")
		require.NoError(t, err)
		twin := launch(t, l, Options{Node: "n1", Boot: 1, Cluster: testCluster, Instance: base.UUID{99}, Dial: w.network.Dialer("elsewhere"), Resolve: a.o.Resolve})
		_, _, err = twin.CallAddr(t.Context(), address("n1"), kindEcho, nil)
		require.ErrorContains(t, err, "another process runs as node n1")
		synctest.Wait()
		require.Empty(t, a.seenTwins(), "who was there first goes on")
		require.Len(t, twin.seenTwins(), 1)
	})
}

// Questions that nobody answers end with the asker, and neither side keeps anything of them.
func TestCallAddrGivesUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("n1"), w.start("n2")
		_, _, err := a.CallAddr(within1s(t), address("n2"), kindBlock, nil)
		require.ErrorIs(t, err, base.CodeTimeout)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		(<-b.blocked).Reply(nil)
		w.network.Split("n1", "n2")
		_, _, err = a.CallAddr(within1s(t), address("n2"), kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		w.network.Heal()

		// A caller that says nothing after its hello is cut off.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		nc, err := DialTag(ctx, w.network.Dialer("n1"), address("n2"), TagAsk)
		require.NoError(t, err)
		_, err = a.greet(nc, newFrameReader(nc), a.hello(""))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, w.network.Links())
		time.Sleep(askedLife + time.Second)
		synctest.Wait()
		require.Empty(t, b.loose)
		require.NoError(t, nc.Close())
		require.Zero(t, w.network.Links())
	})
}

func TestCloseEndsQuestions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("n1"), w.start("n2")
		failed := make(chan error, 1)
		go func() {
			_, _, err := a.CallAddr(t.Context(), address("n2"), kindBlock, nil)
			failed <- err
		}()
		<-b.blocked
		require.NoError(t, b.Close())
		require.ErrorIs(t, <-failed, base.CodeUnreachable)
		_, _, err := b.CallAddr(t.Context(), address("n1"), kindEcho, nil)
		require.ErrorIs(t, err, base.CodeShuttingDown)
		synctest.Wait()
		require.Zero(t, w.network.Links(), "its connection is closed")
	})
}
