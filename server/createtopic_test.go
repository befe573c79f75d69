package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Whatever goes wrong once a topic is committed, the answer must not say that there is none.
func TestCreateTopicThatDoesNotOpenIsApplied(t *testing.T) {
	n := start(t, vfs.NewMem())
	require.NoError(t, n.plane.Close())
	_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: "t"})
	require.ErrorIs(t, err, base.CodeShuttingDown)
	require.Equal(t, base.Applied, base.OutcomeOf(err))
}

// A retry finds the topic as it is now, and says so when it is gone again.
func TestCreateTopicAgain(t *testing.T) {
	n := start(t, vfs.NewMem())
	req := wire.CreateTopicRequest{RequestID: requestID(), Name: "t"}
	first := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.Equal(t, first.Topic.Summary, must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req).Topic.Summary)
	must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: "t"})
	_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.ErrorIs(t, err, base.CodeTopicNotFound)
	require.Equal(t, base.Applied, base.OutcomeOf(err))
}

// A node that is stopped gracefully is given no topic that would wait for its return.
func TestCreateTopicsWhileANodeStops(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	stopped := make(chan struct{})
	for i, after := 0, 0; after < 20; i++ {
		if i == 20 {
			go func() {
				defer close(stopped)
				machines[2].stop()
			}()
		}
		select {
		case <-stopped:
			after++
		default:
		}
		must[wire.CreateTopicResponse](n1, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: fmt.Sprintf("t%d", i), AllowUnderReplicated: true})
	}
}

// A retry is not refused for want of nodes that were there when the topic was made.
func TestCreateTopicAgainWithFewerNodes(t *testing.T) {
	t.Parallel()
	machines := threeMachines(t)
	n1 := machines[0].client()
	req := wire.CreateTopicRequest{RequestID: requestID(), Name: "t", Config: base.TopicConfig{ReplicationFactor: 3}}
	first := must[wire.CreateTopicResponse](n1, wire.KindCreateTopic, req)
	machines[2].stop()
	other := req
	other.RequestID, other.Name = requestID(), "other"
	_, _, err := call[wire.CreateTopicResponse](n1, wire.KindCreateTopic, other)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes, "another topic of three replicas cannot be made now")
	again := must[wire.CreateTopicResponse](n1, wire.KindCreateTopic, req)
	require.Equal(t, first.Topic.Summary.ID, again.Topic.Summary.ID)
}
