// Package sim runs clusters of whole brokers inside one test: a network and disks in memory, and virtual time, so that
// minutes of a cluster's life pass in a second and a crash can be had at any moment.
//
// The nouns. A Cluster is everything of one run: its Network, its Nodes, its clients, and the Trace of what happened.
// A Node is a machine with a disk; it is started and ended any number of times, and each time runs a process, which
// is a whole server.Server. A Network carries streams and packets between machines and can be cut. A Script is the
// seeded choice of faults; the Load is what clients do meanwhile, and what they were told about it.
//
// One run: Run makes a bubble of virtual time (testing/synctest) and a Cluster in it. The test's function starts
// nodes, lets clients work and makes things go wrong. After each step Check holds the invariants against the inside
// of all brokers at one moment: synctest.Wait makes it a moment, since then every goroutine waits for something. At
// the end the network heals, all nodes run, Quiet waits until nothing is left to be done, and CheckQuiet asks more.
// What the clients were told is judged outside of the bubble, where time runs (package history).
//
// What is not obvious:
//
//   - A seed fixes the faults and the load, not the order in which goroutines run. A seed that failed once may need
//     some runs to fail again; its trace is kept at the first time.
//   - A killed process goes on running, as goroutines cannot be killed. It is cut off first (nothing that it does is
//     seen by anybody), then its disk is copied, then it is closed in its own time, on a disk that nobody reads again.
//   - Kill leaves everything that was written, as kill -9 does; Crash leaves what was synced and a part of the rest.
//   - Clients are machines of their own. A partition that does not name them lets them reach both sides, which is
//     the hardest on a leader that does not know yet that it was deposed.
package sim
