// Package peer connects the nodes of a cluster to each other and tells which of them can be reached.
//
// The cluster port is one TCP listener for several purposes; the first byte of a connection says which ([Demux],
// [Tag]). The gossip takes its share as a plain net.Listener. The rest belongs to a [Host], which has at most three
// connections with each other node: the main lane, for control messages and Raft; the bulk lane, for snapshots, so that
// a large one does not delay a heartbeat; and on a port of its own the data lane, for replication (link.go).
//
// One call: [Host.Call] finds the lane of the message's [Kind], waits for it if it is just being dialled, notes the
// call under a fresh id and queues a frame. The writer goroutine of the connection takes all that is queued and
// writes it at once. On the other side the reader goroutine reads the frame, finds the [Handler] of its kind and runs
// it. It never waits: a handler that would block goes through [Host.Queued], whose queue for each group is bounded,
// and whatever is above a bound is answered with CodeBusy. The answer travels back the same way.
//
// The nouns:
//   - keeper: the goroutine that dials one lane of one peer, again and again with full jitter while the peer is kept
//     ([Host.Keep]), or once for a call to a node that is not.
//   - hello: what each side says first: cluster, node, start and process. Foreign clusters and second processes of
//     one node are turned away.
//   - status: what this node can say of another ([State]). Any byte received is life, a silent connection is pinged
//     after 100 ms, the peer counts as unreachable after 500 ms, and as refused at once when its connection broke and
//     its port is closed: then the process is gone.
//   - mark: a channel of capacity one that says "look again" ([Host.Subscribe], then [Host.Liveness]).
//
// # One connection, two diallers
//
// Either side may dial, and when both do at the same time one connection must win on both ends. The lower node id
// decides. It turns a connection from the higher away while its own attempt is under way or its own connection is
// alive; the higher takes every connection from the lower, in place of what it has. An attempt that fails lets the
// other side's next one in, so a pair connects if either direction works.
//
// # Not obvious
//
//   - A process that was stopped (SIGSTOP, a starved machine) finds every peer silent. It forgives the silence of
//     that time, or it would depose every leader upon waking.
//   - A silent connection is kept for some seconds: after a short disturbance it goes on, with all that is under way
//     on it. New calls meanwhile fail at once, as not applied.
//   - Whoever connects has a seat until it has said its tag, and another until its hello has been read (package lobby). The
//     accept loops wait for nobody, so that thousands of silent connections keep no peer out, least of all one that is known
//     to live where it comes from (homes.go).
//   - Outcomes: an error is NotApplied only if the frame was never queued.
package peer
