// Package replica decides, for one segment, what is committed. It is a pure core: no goroutine, clock or I/O.
//
// The nouns. A [Leader] gives out the segment's offsets and gathers what each replica has made durable; the
// replicas are the leader's own disk and any number of followers, none on a one-node cluster. Commit is the
// minimum over *all* of them: an ack is a promise that every replica holds the batch on stable storage, so one
// fenced intact survivor is enough to find every acked batch again. A roll ends the segment at an offset that the
// coordinator commits; until then nobody, the leader included, knows where it ends.
//
// One batch travels so: [Leader.Append] gives it an offset; the shell writes it locally and takes the sends that
// [Leader.Ready] asks for; [Leader.LocalDurable] and [Leader.FollowerAck] report durable ends as they come; when
// the slowest has passed it, Ready lists it in Done, after the commit that covers it.
//
// The life of a leader is four states, one method each in state.go:
//
//	Leading ──Drain──▶ Draining ──all acked──▶ Frozen ──Sealed──▶ Sealed
//	   │                  └─too long, or late───▶ ▲                  ▲
//	   ├──Freeze, late replica─────────────────────┘                  │
//	   └──Sealed: the coordinator did it without asking───────────────┘
//
// Frozen is why the end that was asked for stays true: a late ack could move the commit while the request to seal
// is under way, and the successor would begin at another offset than metadata says. So acks stop counting first,
// the request is sent second, and no path leads back: a freeze never thaws. What is pending above the frozen end
// stays with the leader until the committed end is known; [Leader.Tail] is what a successor has to be given again.
package replica
