package routing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

// overNetwork replaces the pretended calls between the members by connections of package peer.
func (c *cluster) overNetwork(t *testing.T) *peer.Network {
	network := peer.NewNetwork()
	var ids []base.NodeID
	hosts := make(map[base.NodeID]*peer.Host)
	for id, m := range c.nodes {
		l, err := network.Listen(string(id) + ":2922")
		require.NoError(t, err)
		demux := peer.NewDemux(l, nil)
		h := peer.New(peer.Options{
			Node: id, Boot: 1, Cluster: base.UUID{1}, Instance: base.UUID{2, id[1]},
			Listen: demux.Listener, Dial: network.Dialer(string(id)),
			Resolve: func(n base.NodeID) (string, bool) { return string(n) + ":2922", true },
		})
		h.Register(KindForward, m.r.Receive)
		h.Start()
		demux.Start()
		t.Cleanup(func() {
			_ = h.Close()
			_ = demux.Close()
		})
		m.r.o.Peers = h
		ids, hosts[id] = append(ids, id), h
	}
	for _, h := range hosts {
		require.NoError(t, h.Keep(ids))
	}
	time.Sleep(5 * time.Second) // virtual; they have connected by then
	return network
}

func TestOverConnections(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		network := c.overNetwork(t)
		c.lead("n3", 3)
		c.believe("n2", 2, "n1")
		c.believe("n3", 3, "n2", "n3")
		require.Equal(t, "make by n3", c.mustAsk("n1", wire.KindCreateTopic, "make"))

		_, err := c.ask("n1", wire.KindRoute, "missing")
		require.ErrorIs(t, err, base.CodeTopicNotFound, "an error keeps its code on the way")

		// The process ends: its port refuses, and a second leads from half a second on.
		network.Kill("n3")
		c.believe("n3", 3, "n1", "n2")
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() {
			c.lead("n2", 4)
			c.believe("n2", 4, "n1", "n2")
			c.nodes["n1"].r.Wake()
		})
		require.Equal(t, "again by n2", c.mustAsk("n1", wire.KindCreateTopic, "again"))
		require.Less(t, time.Since(start), 700*time.Millisecond)
	})
}

// A leader that hears nobody any more keeps the connection and says nothing.
func TestOverASplit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newCluster(t, "n1", "n2", "n3")
		network := c.overNetwork(t)
		c.lead("n3", 3)
		c.believe("n3", 3, "n1", "n2", "n3")
		c.mustAsk("n1", wire.KindRoute, "look")
		network.Split("n1", "n3")
		network.Split("n2", "n3")
		start := time.Now()
		time.AfterFunc(800*time.Millisecond, func() {
			c.lead("n2", 4)
			c.believe("n2", 4, "n2")
		})
		require.Equal(t, "make by n2", c.mustAsk("n1", wire.KindCreateTopic, "make"))
		require.Less(t, time.Since(start), 1200*time.Millisecond)
	})
}
