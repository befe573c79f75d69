package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/wire"
)

// Trace says where the time of one record went, from the call of SendTraced until its ack. The stages follow each other,
// so that Route, Linger, Encode, Retried, Send and Commit add up to Total, apart from what passed between them.
type Trace struct {
	// Route was spent to find the topic's ranges: a request when the topic is new to the producer, else nothing.
	Route time.Duration
	// Linger was spent in the batch, until it went: for other records to join it, and for those before it to make way.
	Linger time.Duration
	// Encode was spent to finish the batch and to compress it.
	Encode time.Duration
	// Retried is how long tries took that were not the last, with the pauses between them; nothing when the first one
	// was acknowledged.
	Retried time.Duration
	// Send was spent on the way to the leader and back.
	Send time.Duration
	// Commit was spent at the leader: from the arrival of the batch until every replica had it, on
	// stable storage unless the topic's durability is replicated.
	Commit time.Duration
	// Total is the time from the call until the answer.
	Total time.Duration

	// Tries is how many times the batch was sent.
	Tries int
	// Records and Bytes are the size of the batch that the record shared.
	Records, Bytes int

	// Leader is the node that took the batch.
	Leader NodeID
	// Taken is when the batch had its offset, LeaderFsync when it was durable on the leader itself; both from its
	// arrival there. LeaderFsync is 0 where the ack did not wait for it.
	Taken, LeaderFsync time.Duration
	// Followers are the other replicas. They are empty for a batch that had been stored by an earlier try.
	Followers []FollowerTrace
}

// FollowerTrace is one follower's part in a commit. Times count from the arrival of the batch at the leader.
type FollowerTrace struct {
	Node NodeID
	// Sent is when the leader handed the batch to the connection, Acked when the follower's answer came.
	Sent, Acked time.Duration
	// Fsync is how long the follower took from receiving the batch until it was durable there; 0 where its answer did
	// not wait for that.
	Fsync time.Duration
}

// tracing is what is measured of one batch that carries a record of SendTraced. All its methods do nothing on nil: batches
// that nobody asks about are not measured.
type tracing struct {
	first    time.Time // when the batch was first taken to be sent
	finished time.Time // when it had been encoded
	last     time.Time // when the try was sent that was acknowledged
	done     time.Time // when its answer came
	remote   *wire.ProduceTrace
}

func (t *tracing) taken(now time.Time) {
	if t != nil {
		t.first = now
	}
}

func (t *tracing) encoded(now time.Time) {
	if t != nil {
		t.finished = now
	}
}

// answered takes what the leader says of its part. Without it the trace ends at the leader's door.
func (t *tracing) answered(sent, now time.Time, payload []byte) {
	if t == nil {
		return
	}
	t.last, t.done = sent, now
	if t.last.Before(t.finished) {
		t.last = t.finished // the first try: it was encoded after it was taken
	}
	var remote wire.ProduceTrace
	if len(payload) > 0 && wire.Decode(payload, &remote) == nil {
		t.remote = &remote
	}
}

// routed notes that the record's topic has been found.
func (c *completion) routed() {
	if c.wait != nil && c.wait.trace != nil {
		c.wait.trace.Route = time.Since(c.start)
	}
}

// trace fills in the trace of one record of the batch, whose send began at start.
func (bt *batch) trace(into *Trace, start, now time.Time) {
	t := bt.traced
	into.Total = now.Sub(start)
	if t.done.IsZero() {
		return // its range ended, and told of it later
	}
	into.Linger = max(t.first.Sub(start)-into.Route, 0)
	into.Encode = t.finished.Sub(t.first)
	into.Retried = t.last.Sub(t.finished)
	into.Send = t.done.Sub(t.last)
	into.Tries, into.Records, into.Bytes = bt.tries, bt.records(), len(bt.encoded)
	if t.remote == nil {
		return
	}
	into.Leader = t.remote.Node
	into.Commit = min(micros(t.remote.CommitUs), into.Send)
	into.Send -= into.Commit
	into.Taken, into.LeaderFsync = micros(t.remote.TakenUs), micros(t.remote.FsyncUs)
	for _, r := range t.remote.Replicas {
		into.Followers = append(into.Followers, FollowerTrace{
			Node: r.Node, Sent: micros(r.SentUs), Acked: micros(r.AckUs), Fsync: micros(r.FsyncUs),
		})
	}
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
