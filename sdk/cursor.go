package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// cursor is how far one range has been read. Three offsets move along it:
//
//	pos <= the chunks of data fetched and not returned yet <= next
//
// pos is the next record for Poll to return, next the next one to fetch.
type cursor struct {
	k   *Consumer
	t   *consumerTopic
	ref base.RangeRef

	state  cursorState
	pos    int64
	next   int64
	commit int64      // the highest any replica has proved; an answer that knows less is from one that lags
	epoch  base.Epoch // of the last batch returned; it never falls
	end    int64      // of a sealed range, once known; -1 before
	stopAt int64      // where StopAtEnd has read enough; -1 when it does not apply

	paused    bool
	gen       uint64 // raised by a seek: answers and chunks from before it are dropped
	chunks    []chunk
	inQueue   bool // in Consumer.queue
	fetching  bool
	locating  bool
	broker    *broker // that is read from; nil when one has to be found
	replicas  replicas
	failures  int
	damage    damage
	notBefore time.Time
	lastErr   error // of the last attempt; nil after a good one
}

type cursorState uint8

const (
	cursorWaiting  cursorState = iota // for its start to be found, or its parents to be finished
	cursorReading                     // being fetched
	cursorFailed                      // Poll was told why; waits for a seek
	cursorFinished                    // read to the end of a sealed range, or to where StopAtEnd stops
)

// chunk is fetched data: whole batches back to back.
type chunk struct {
	data []byte
	from base.NodeID
}

func (cur *cursor) position() Position {
	return Position{Topic: cur.t.name, Range: cur.ref.Range, Offset: cur.pos}
}

// startLocked begins to read at an offset.
func (cur *cursor) startLocked(offset int64) {
	cur.state = cursorReading
	cur.pos, cur.next = offset, offset
	cur.checkEndLocked()
}

// seekLocked goes to an offset, whatever the state.
func (cur *cursor) seekLocked(offset int64) {
	cur.gen++
	cur.k.dropChunksLocked(cur)
	cur.epoch, cur.failures, cur.damage, cur.notBefore = 0, 0, damage{}, time.Time{}
	cur.broker, cur.lastErr, cur.replicas = nil, nil, replicas{shunned: cur.replicas.shunned}
	cur.fetching = false // the answer on its way is of another generation
	cur.startLocked(offset)
}

// checkEndLocked finishes the range when everything that is to be read of it has been returned.
func (cur *cursor) checkEndLocked() {
	if cur.state != cursorReading {
		return
	}
	atEnd := cur.end >= 0 && cur.pos >= cur.end && cur.next >= cur.end && len(cur.chunks) == 0
	enough := cur.stopAt >= 0 && cur.pos >= cur.stopAt
	if !atEnd && !enough {
		return
	}
	cur.state = cursorFinished
	cur.k.dropChunksLocked(cur)
	if atEnd {
		cur.t.finishedLocked(cur)
	}
	signal(cur.k.news) // Poll may have nothing left to wait for
}

// failLocked stops the range and gives Poll the reason.
func (cur *cursor) failLocked(err error) {
	cur.gen++
	cur.fetching = false
	cur.k.dropChunksLocked(cur)
	cur.state = cursorFailed
	cur.k.reportLocked(err)
}

// retryLocked lets the range be fetched from the same broker again after a pause.
func (cur *cursor) retryLocked(err error, now time.Time) {
	cur.failures++
	cur.notBefore = now.Add(requestBackoff.wait(cur.failures))
	cur.lastErr = err
}

// elsewhereLocked leaves the broker for another replica, at once.
func (cur *cursor) elsewhereLocked(err error, now time.Time) {
	cur.replicas.useless(cur.broker.node(), now)
	if base.CodeOf(err) == base.CodeNotReplica {
		cur.replicas.holdsNone(cur.broker.node(), now)
	}
	cur.failures++
	cur.lastErr = err
	cur.broker = nil
}

// roundOverLocked waits, since no replica was of use, before they are looked up and asked anew.
func (cur *cursor) roundOverLocked(err error, now time.Time) {
	cur.replicas.roundOver()
	cur.t.wanted = true
	cur.lastErr = err
	cur.broker = nil
	cur.notBefore = now.Add(lagPause(cur.replicas.rounds))
}

// wantsFetchLocked reports whether the range should be asked for more.
func (cur *cursor) wantsFetchLocked(share int64) bool {
	if cur.state != cursorReading || cur.paused || cur.fetching || cur.locating {
		return false
	}
	if cur.end >= 0 && cur.next >= cur.end || cur.stopAt >= 0 && cur.next >= cur.stopAt {
		return false
	}
	return cur.bufferedLocked() < share
}

func (cur *cursor) bufferedLocked() (n int64) {
	for _, ch := range cur.chunks {
		n += int64(len(ch.data))
	}
	return n
}

// enqueueLocked makes Poll find the cursor's chunks.
func (cur *cursor) enqueueLocked() {
	if len(cur.chunks) > 0 && !cur.inQueue && !cur.paused {
		cur.inQueue = true
		cur.k.queue = append(cur.k.queue, cur)
		signal(cur.k.news)
	}
}

// dropChunksLocked forgets what is fetched of a range.
func (k *Consumer) dropChunksLocked(cur *cursor) {
	k.queued -= cur.bufferedLocked()
	cur.chunks = nil
}

// reportLocked queues an error for Poll.
func (k *Consumer) reportLocked(err error) {
	k.errs = append(k.errs, err)
	signal(k.news)
	signal(k.trouble)
}

func (k *Consumer) find(topic string, id RangeID) *cursor {
	for _, cur := range k.cursors {
		if cur.ref.Range == id && cur.t.name == topic {
			return cur
		}
	}
	return nil
}
