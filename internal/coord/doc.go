// Package coord runs the coordinators: one loop for each shard that this node leads. A loop observes (what its shard
// applied, what leaders ask, what nodes confirm, the clock), plans with the pure planner, proposes to its shard, and
// tells nodes what was committed until they confirm it.
//
// The nouns: a Coord owns the loops; a loop owns everything about its shard and shares nothing; its inbox is the one
// place where other goroutines reach it; an outbox a disk of a node holds what that has not confirmed; the agenda says
// which topic's retention is due when; the actives are the segments that are written to, by the nodes of their replicas;
// a recovery is one of them whose leader cannot go on, a wish one that should end for the sake of its replicas.
//
// One operation: a leader freezes its segment and calls RequestRoll. The request lands in the loop's inbox with
// others; one plan gives all of them replica sets; one command commits them; each caller gets its successor's
// assignment, and the shard's event puts the same into the outboxes, so that it arrives even if the answer is lost.
//
// What is not obvious:
//
//   - Nothing here is durable and nothing needs to be. A new loop tells every node everything it holds, which nodes
//     confirm from what they have, and finds out by that which segments need a recovery.
//   - Orders are derived from the committed state at the moment they are sent, never stored: what changed meanwhile is
//     sent as it is now. Versions let the node ignore what is older.
//   - Several lanes go to each disk of a node. What just happened does not queue behind the thousands of segments told
//     at start, nor behind files that are being removed.
//   - Nothing rests on this node still being the coordinator: what it reads was committed, orders carry versions, and a
//     command that names what is not active any more changes nothing. So reads are local, and late orders do no harm.
//   - A node that started anew is told again what it holds, and by its answers it is found what it led and cannot go on
//     with. What it has of ranges that were trimmed meanwhile is found by a census (census.go).
//   - A leader is gone when its port refuses, when it is rumoured dead and not heard, when it has started anew, or when
//     neither this node nor another replica of the segment has heard it for two seconds (gone.go, hearsay.go). Its
//     segments are fenced and sealed in rounds: those that somebody asks for first, the others so many a second.
//   - A fence is asked of every replica, the leader too. Those that are connected are waited for, at most 200 ms once one
//     has answered; an answer that comes later still counts (fence.go).
//   - What a follower confirms says nothing of whether a segment is open: only its leader's word does.
//   - Nothing is scanned on a timer. Idle topics cost nothing: the agenda knows the next due time, and who depends on a
//     node is known by its index.
package coord
