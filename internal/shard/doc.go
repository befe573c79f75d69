// Package shard hosts this node's replicas of the metadata shards: many Raft groups on one log, with a meta.State as
// the state machine of each. hashicorp/raft lives here and its types go no further.
//
// The nouns: a Host owns the shared log and the groups; a group is one replica (the raft instance, its fsm, a watcher
// of its leadership); the sharedLog is one internal/wal for the entries, terms and votes of all groups, with a logTail
// in memory for each; a snapshotStore keeps a group's last two snapshots.
//
// One operation: Propose encodes the command and hands it to the group's raft instance; many callers at once become
// one batch. The batch, and those of other groups at that moment, become one commit of the shared log: one fsync. Once
// committed, fsm applies it to the meta.State, answers the callers, and tells OnApply which topics changed.
//
// Replicas talk over the connections of package peer. On the way out (transport.go) requests of all groups share them,
// heartbeats of many groups share messages (heartbeats.go), snapshots go in chunks on the bulk lane (chunks.go). On the
// way in (receive.go) a request is admitted, if it names this very server and generation, and waits in the inbox of its
// group, which is bounded and leaves nobody without an answer.
//
// Failover follows the connections, not raft's timers: when the node of a leader is given up, or nobody leads, the voters
// ask each other (watch.go), and once a majority has lost it the one with the longest log is let stand (failover.go,
// which decides and is pure; stand.go). A leader whose log stands still is lost too, by its own word, which travels with
// the heartbeats (standstill.go). A group is begun and given up on orders alone (hosting.go).
//
// Members and leaders: a reconciler takes each group led here, step by step, to the members that the ring names
// (reconcile.go; which step is next says planner.Seats), a balancer gives leaderships to the nodes that should have them
// (balance.go; planner.Leaders), and both leave the others to do the same. A transfer (transfer.go) is our own: the
// proposals wait, the target catches up, and is told to stand for election. A shard that lost its quorum for good is
// rebuilt from the newest log found, under a new generation (recover.go, rebuild.go; the steps are in FORMAT.md).
//
// What is not obvious:
//
//   - A fresh read (View) asks a majority, by messages sent after the question: it relies on no lease, nor on raft's own
//     VerifyLeader, which counts answers that were given before. A leader serves nothing before a barrier of its own term,
//     so that all it inherited is applied.
//   - Heartbeats wait for the group's main loop like every request: raft 1.8.0 would handle them beside it and can diverge
//     (heartbeat_test.go shows it).
//   - While a follower is away its append waits in the transport, since raft would try again ever more rarely.
//   - A commit index that travels with entries never exceeds the last of them: of what lies behind in the follower's log
//     nothing is known.
//   - Terms and votes are durable before raft goes on. When the log cannot be written the process must end: OnFatal is
//     called and the group's goroutine stops where it stands, since raft would panic on the error.
//   - What a group needs for the older of its two snapshots stays in the log, so that losing the newer one costs
//     nothing. A snapshot that the log does not reach is an error at start, never a silent gap.
//   - A group that is rarely written would pin the oldest file of the log: its tail is copied forward instead.
//   - A single voter does not wait for an election timeout: it is told TimeoutNow as soon as it has started.
//   - What a follower holds is noted where its answers arrive (progress.go), since raft tells nobody. It counts for one
//     term, and an answer for three seconds.
//   - A configuration names a node once, so a lost meta directory is removed before the new one of its node is added.
//   - No belief about who is dead adds or removes a member: only the root's table does, by way of the ring.
package shard
