// Package sdktest runs a real broker inside a test.
//
//	func TestOrders(t *testing.T) {
//		broker := sdktest.Start(t, sdktest.WithTopic("orders", 1))
//		client := broker.Client(t)
//		producer, err := client.NewProducer("orders")
//		…
//	}
//
// The broker is the one that `eastguard` runs, with all of its storage, listening on a free port of the loopback
// interface. Its disk is in memory (WithDisk puts it into a temporary directory), so a test starts in milliseconds
// and leaves nothing behind. Restart stops it in good order; Kill takes away what was not yet on stable storage, as
// a power failure would. The address stays the same over both.
package sdktest
