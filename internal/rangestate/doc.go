// Package rangestate is what a range remembers beside its records: for each idempotent producer its epoch and its
// last five batches, so that a retry is recognised and a gap refused (slots and fences of keyed topics will join
// it). It is a pure function of the state at a segment's base and of the batch headers since: every replica that
// holds the same batches comes to the same state, whoever led.
//
// The nouns. A [State] has a committed part and a pending part: the batches appended above the known commit, kept
// apart in a queue. So the state at any later end, the committed one or the lower one of a seal, is reached by
// [State.Commit] or [State.Rollback] and never needs a scan of the log. What the bounds throw out (a sixth batch, the
// 4,097th producer) leaves when its cause is committed, never before: else a rollback could not bring it back.
//
// One batch travels so: the leader asks [State.Check] for a verdict on its header, which sees the pending part too; an
// accepted batch is told by [State.Append]; the commit that covers it moves it into its producer's window.
//
// FORMAT.md shows the bytes of the encoding.
package rangestate
