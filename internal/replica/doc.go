// Package replica decides, for one segment, what is committed. It is a pure core: no goroutine, clock or I/O.
//
// The nouns. A [Leader] gives out the segment's offsets and gathers what each replica has made durable; the
// replicas are the leader's own disk and any number of followers, none on a one-node cluster. A [Follower] takes one
// leader's batches in order and says what this disk holds. Commit is the minimum over *all* replicas: an ack is a
// promise that every one of them holds the batch on stable storage, so one fenced intact survivor is enough to find
// every acked batch again. A roll ends the segment at an offset that the coordinator commits; until then nobody, the
// leader included, knows where it ends.
//
// One batch travels so: [Leader.Append] gives it an offset; the shell writes it locally and carries the sends that
// [Leader.Ready] asks for; each follower answers Take to [Follower.Append], its shell writes it, reports
// [Follower.Durable], and sends the ack that is due; [Leader.LocalDurable] and [Leader.FollowerAck] gather the durable
// ends as they come; when the slowest has passed the batch, Ready lists it in Done, after the commit that covers it.
// The commit reaches the followers with the next send, or alone, and [Follower.Commit] lets their readers see it.
//
// The life of a leader is four states, one method each in state.go:
//
//	Leading ──Drain──▶ Draining ──all acked──▶ Frozen ──Sealed──▶ Sealed
//	   │                  └─too long, or lost──▶ ▲                   ▲
//	   ├──Freeze, lost follower───────────────────┘                   │
//	   └──Sealed: the coordinator did it without asking───────────────┘
//
// Frozen is why the end that was asked for stays true: a late ack could move the commit while the request to seal
// is under way, and the successor would begin at another offset than metadata says. So acks stop counting first,
// the request is sent second, and no path leads back: a freeze never thaws. What is pending above the frozen end
// stays with the leader until the committed end is known; [Leader.Tail] is what a successor has to be given again.
//
// The life of a follower is five, one method each for an open and an append in following.go:
//
//	Waiting ──Open──▶ Opening ──Opened──▶ Following ──Seal──▶ Closed
//	   └───────────────────┴──Fence, Failed──▶ Out ──Seal──────▲
//
// A follower is bound to one [Source], the process that opened the segment first. The same node after a restart is
// another process and knows nothing of what its predecessor was promised, so it is refused like any stranger. Out is
// for good, as a freeze is: what a fence has counted must not grow.
//
// What is not obvious:
//   - Late is a report, lost is a fact. A replica that stands still for Timeout is listed in Ready.Late, again at each
//     Tick, and the shell decides whether a roll would help. A follower whose process is gone, or that says so, can
//     never ack: a segment with something in flight freezes by itself.
//   - A segment without traffic does not pay for a lost follower. It stays as it is until [Leader.FreezeIfLost], which
//     the shell asks before the next append; only then is the roll worth its fsyncs.
//   - A lost follower goes on counting in the minimum. What it will never ack is never acked to a producer.
//   - A session is not a process. When a link comes up again to the same process, [Leader.FollowerUp] goes back to
//     what was acked; tails of the old session that arrive late are duplicates to the follower, and acked as such.
//   - A gap is asked for once, by Want, or the appends in flight behind it would each have the leader send all again.
package replica
