// Package dataplane holds this node's share of the segments that are written to: it leads some and follows others. It
// joins the pure cores replica.Leader, replica.Follower and rangestate.State to the node's log in package store and to the
// data lanes between nodes in package peer.
//
// The nouns. A [Plane] has an actor for each range it knows of. The actor has at most one lead, the leader of the range's
// active segment, or one following, its follower here, and a queue of appends that wait. An actor has no goroutine: its
// mailbox is drained by whoever finds it idle (mailbox.go), so an uncontended append runs from the socket to the log on
// one stack, and offsets and log order agree because both are given in the same turn.
//
// One append travels so: [Plane.Append] checks the batch on the caller's goroutine and posts it; the actor asks the
// range's state whether it is new, patches offset and epoch into its header, hands it to the log and tells the leader
// core; what that wants sent goes to the followers in the same turn (replicate.go), so that all disks are at it together.
// On a follower's node the connection's reader posts it to the range's actor there, which hands it to its own log and
// acks what that has made durable (follow.go). The leader's log calls back after its fsync, on its own goroutine, and acks
// arrive on the connections' readers; each takes a turn, moves the commit to the least of them all, and then the store
// publishes it to readers, the ack goes out, and the followers hear of it with the next append or right away.
//
// One roll travels so: an append that would take the segment past its limit finds no room and begins to wait; the leader
// drains and freezes; a goroutine of a bounded pool asks the coordinator; the answer is the successor's assignment, which
// ends the old segment at its base, is made durable, and lets the waiting appends in, the tail of the old segment first,
// with the offsets it had. The same assignment also comes by [Plane.Tell], earlier or later; it is idempotent.
//
// One failure travels so: a connection that broke is back within 50 ms, and the follower is told of the segment again and
// sent what it had not acked; or its process is gone, or is another one, or says that it will never ack again, and it is
// lost; or it stands still, and is late (late.go). A segment with a lost follower freezes once there is something that the
// follower would have to ack, one with a late follower when that is allowed, and the roll names who is to be replaced.
// Nothing that was in flight is answered before the committed end is known: what lies below it was appended, what lies
// above goes on in the successor if that is led here, and from its producer otherwise.
//
// One end travels so: [Plane.Tell] brings a segment's committed end; the store makes it durable, with a fence of the
// segment's epoch; a copy that reaches it is confirmed as held. One that does not is confirmed as short, and what it lacks
// is copied from another replica, if that is not much (mend.go).
//
// The limits, and what happens at them. A segment has 16 MiB in flight and the node 128 MiB over all segments: more waits.
// 64 MiB wait over the whole node: more is answered busy at once, and what waits to its deadline is answered busy then. A
// log that is full for the moment is waited for, a disk that is full ends the segment, or is the answer where no other node
// could take it. What the queue of a connection does not take is sent when there is room; what a follower has no room for
// is dropped, and asked for when there is. Each of them shows in a counter (metrics.go).
//
// What is not obvious:
//
//   - A leader leads a segment for one process start, the one that was placed (meta.Assignment.Boots). An assignment of
//     a segment that the store knows from an earlier boot, or that names another boot, is confirmed as fenced, and the
//     coordinator seals it; appends wait for its successor.
//   - Retiring an idle leader is not that: the process is the same, everything it appended is committed, and the next
//     append resumes it. What became of its followers meanwhile is found out then.
//   - A message that was queued may be lost with its connection, and one may come by an old connection after the new one
//     is up. Durable ends are facts and count whoever brings them; what a follower misses is about one connection.
//   - The links' events are only marks: what counts is how a link is when the actor looks (Links.DataLink).
//   - done callbacks run in the actor's turn, often on the log's goroutine or a connection's reader. They must not block.
//     They may call Append: their event is queued behind the turn.
//   - A batch that waits is counted in bytes over the whole node; one that is refused never had an offset. One in flight
//     is counted for its segment and for the node (credit.go): its bytes are the log's, the readers' and every
//     connection's, and are not copied on the way.
//   - Nobody posts while holding a lock: the poster may have to run the actor.
//   - No turn reads from the disk: it may be run by the reader of a connection, and what follows on that is other ranges'
//     (reads.go). The log's writes do not block either; what is asked of it in a turn it has in memory.
package dataplane
