package sdktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatWasAckedOutlivesEverything(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
	client := broker.Client(t)
	p, err := client.NewProducer("orders", sdk.WithLinger(0))
	require.NoError(t, err)
	addr := broker.Addr()
	for i, upset := range []func(){broker.Restart, broker.Kill, broker.Disconnect, broker.Kill} {
		ack, err := p.Send(t.Context(), sdk.Record{Value: []byte{byte(i)}})
		require.NoError(t, err)
		require.Equal(t, int64(i), ack.Offset)
		upset()
		require.Equal(t, addr, broker.Addr())
	}
	require.NoError(t, p.Close(t.Context()))

	c, err := client.NewConsumer(sdk.WithTopics("orders"), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(t, err)
	n := 0
	for m, err := range c.Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, []byte{byte(n)}, m.Value)
		n++
	}
	require.Equal(t, 4, n)
}

func TestOnDisk(t *testing.T) {
	broker := sdktest.Start(t, sdktest.WithDisk(), sdktest.WithTopic("orders", 2))
	client := broker.Client(t)
	p, err := client.NewProducer("orders", sdk.WithLinger(0))
	require.NoError(t, err)
	_, err = p.Send(t.Context(), sdk.Record{Key: []byte("k")})
	require.NoError(t, err)
	broker.Restart()
	ack, err := p.Send(t.Context(), sdk.Record{Key: []byte("k")})
	require.NoError(t, err)
	require.Equal(t, int64(1), ack.Offset)
}
