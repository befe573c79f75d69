// Package dataplane leads segments: it joins one pure replica.Leader and one rangestate.State for each range that
// this node leads to the node's log in package store.
//
// The nouns. A [Plane] has an actor for each range it knows of; the actor has at most one lead, the leader of the
// range's active segment, and a queue of appends that wait. An actor has no goroutine: its mailbox is drained by
// whoever finds it idle (mailbox.go), so an uncontended append runs from the socket to the log on one stack, and
// offsets and log order agree because both are given in the same turn.
//
// One append travels so: [Plane.Append] checks the batch on the caller's goroutine and posts it; the actor asks the
// range's state whether it is new, patches offset and epoch into its header, hands it to the log and tells the
// leader; the log calls back after the fsync, on its own goroutine, which takes the actor's next turn: the leader
// moves the commit, the store publishes it to readers, and the ack goes out.
//
// One roll travels so: an append that would take the segment past its limit finds no room and begins to wait; the
// leader drains and freezes; a goroutine of a bounded pool asks the coordinator; the answer is the successor's
// assignment, which ends the old segment at its base, is made durable, and lets the waiting appends in, the tail of
// the old segment first. The same assignment also comes by [Plane.Tell], earlier or later; it is idempotent.
//
// What is not obvious:
//
//   - A leader leads a segment for one process start. An assignment of a segment that the store knows from an earlier
//     boot is confirmed as fenced, and the coordinator seals it; appends wait for its successor.
//   - Retiring an idle leader is not that: the process is the same, everything it appended is committed, and the next
//     append resumes it.
//   - done callbacks run in the actor's turn, often on the log's goroutine. They must not block. They may call Append:
//     their event is queued behind the turn.
//   - A batch that waits is counted in bytes over the whole node; one that is refused never had an offset.
//   - Nobody posts while holding a lock: the poster may have to run the actor.
package dataplane
