// Package chaos writes to and reads from a cluster of real processes while they are killed, stopped, cut off from each
// other and given bad disks, and tells what became of every record.
//
// The nouns. A Fault is one thing that goes wrong, for a while. A Load is the producers and consumers: it keeps where
// each record was acked, and each wait for an ack that was longer than usual (a Gap). A Report is the end of it: how much
// was acked, and how much of that is lost, doubled or out of order, which must be nothing.
//
// One run: Run starts the load, lets faults happen one after the other until the time is over, makes everything well
// again, lets the load come to its end, and reads all topics from their beginning.
//
// scripts/chaos.sh runs it in network namespaces; a test of cmd/eastguard runs it shorter, on loopback.
package chaos
