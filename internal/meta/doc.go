// Package meta is the mind of one metadata shard: a deterministic state machine that turns a log of commands into
// topics, ranges and segments. It is pure: no clock, no goroutine, no lock, no I/O. Every choice (placement, ends,
// ids, times) is inside the command, so two states that applied the same log are equal to the byte.
//
// The nouns: a State holds Topics by id and by name, Tombstones of deleted topics until every replica has confirmed
// their removal, a table of answered requests, and (in shard 0 alone) the Root: the cluster's id and its nodes. A
// Topic has Ranges that tile the key space; a Range is a chain of Segments, dense from its earliest offset to the
// base of the one that is active.
//
// One operation: the coordinator proposes a Command; every voter decodes it and calls Apply, which validates first
// and changes the state only if everything holds. It returns a Result for the proposer and Events for the journal.
// The coordinator derives Assignments from the changed topic and tells them to nodes until they confirm.
//
// What is not obvious:
//
//   - A *Topic reached from a State is immutable. Apply puts a changed copy in its place, so a reader may keep one
//     without a lock, and a snapshot of the whole state is two map clones.
//   - A retry with the same request id gets the stored result, also when it was a refusal. Rolls, trims and
//     confirmations carry no request id: they name (segment, epoch) or a disk and are idempotent by themselves.
//   - On a mismatch RollSegments changes nothing and returns what is stored, so whoever lost a race reads the end
//     that was committed instead of believing its own.
//   - Sealed segments without records leave the chain, but for the last one, whose replicas hold the range's producer
//     state until the successor has opened. Restarting a broker must not make metadata grow. The newest few of those that
//     left are remembered beside the chain, so that whoever holds them can be told their ends.
//   - Replica sets carry the starts of their nodes. A later start of a node is none of the segment's replicas: it may have
//     lost what the one that was placed had acked.
//   - What was given up is remembered for ever: forced ends and ends that may be too low stand in the topic's Losses, also
//     when retention has dropped the segments.
//   - The state's time is the highest time any command carried: clocks that step back change nothing.
package meta
