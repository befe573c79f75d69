// Package procs runs clusters of real broker processes on loopback, for what virtual time cannot show: kill -9, SIGSTOP,
// the kernel's TCP, real disks, and how long things take. Tests of cmd/eastguard and the benchmark use it.
//
// A Cluster is some Nodes, each a directory and four ports that stay the same over its starts. Nothing here waits for a
// fixed time: what is waited for is asked of the brokers, again and again, until a deadline.
package procs
