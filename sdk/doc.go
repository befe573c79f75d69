// Package sdk is the Go client of EastGuard.
//
//	client, err := sdk.NewClient(sdk.WithSeeds("broker:2921"))
//	producer, err := client.NewProducer("orders")
//	ack, err := producer.Send(ctx, sdk.Record{Key: []byte("user123"), Value: []byte("hello")})
//
//	consumer, err := client.NewConsumer(sdk.WithTopics("orders"))
//	for message, err := range consumer.Records(ctx) {
//		…
//	}
//
// # Nouns
//
// A [Client] is the door to one cluster: one connection to each broker in use, and the routes of the topics in
// use. A [Record] has a key, a value, headers and a timestamp; a nil key or value is null, which is not the same as
// an empty one. A topic consists of ranges, each a slice of the hashed key space with offsets of its own from 0:
// records with one key are in one range, in the order sent. A [Position] is therefore a topic, a range and an
// offset; there is no type here that holds an offset alone. Ranges may split and merge while they are written and
// read; a range that did so is sealed, and its records come before those of its successors.
//
// A [Producer] sends records and is told for each what became of it ([Ack], or an error whose [Outcome] says
// whether it was stored). A [Consumer] reads topics from a [Start] on. An [Admin] makes, changes and describes
// topics and describes the cluster. [Client.Watch] follows the journals of all its nodes. Every error is, or wraps, an [*Error] with a [Code].
//
// # How one record travels
//
// [Producer.SendAsync] hashes the routing key (producer.go), finds the range in the topic's table
// (producer_topic.go), takes the record's size from the producer's memory (memory.go), and appends it to the open
// batch of the range (buffer.go), where it is encoded at once. When the batch is full or its linger is over, the
// pump, on whichever goroutine caused that, stamps it with producer id, epoch and sequence number, compresses it
// and hands it to the connection of the range's leader (buffer_send.go). The answer comes on the connection's
// reader, which wakes waiting senders itself, gives callbacks to the finisher (finish.go), and pumps what the answer
// made room for. What an error means is decided in classify.go; what it means for a batch in buffer_fail.go;
// how a buffer finds its leader again in buffer_mend.go, and when it stops waiting for one that does not answer in
// buffer_overdue.go; deadlines are buffer_watch.go's. Where the time of one record went is trace.go's.
//
// In the other direction one goroutine a consumer plans fetches (consumer_run.go), one request for all ranges of a
// broker that want data. Which replica of a segment that is (locate.go) is decided by rack, round trip and, among equals,
// by chance (nearest.go); where ranges begin and end is asked in offsets.go. The answer is checked and queued on the
// connection's reader (fetch.go), and decoded by [Consumer.Poll] on the caller's goroutine (poll.go). Which range follows
// which is lineage.go.
//
// # How one event travels
//
// There is no node that knows everything, so [Client.Watch] asks each for what it has seen (watch.go): a goroutine a node
// (pull) polls its journal from where the last answer ended, and hands what came to the goroutine that ranges over the
// watch. That one gives it to a value without goroutine or clock (watch_merge.go), which holds an event until every other
// node has told what is older, or has been waited for long enough. A pull waits until its answer is taken, so whoever
// ranges slowly slows the polling down and nothing piles up.
//
// # Options
//
// Each constructor takes options of its own kind: [ClientOption], [ProducerOption], [ConsumerOption]. Their
// documentation names default and unit; the constructor refuses what does not fit together with
// CodeInvalidArgument. The defaults lose nothing and double nothing. What one most often changes:
//
//	producer, low latency       WithLinger(0)                        send at once; records still share batches under load
//	producer, throughput        WithCompression, WithMaxBatchBytes   fewer, larger batches
//	producer, overload          WithFailWhenFull, WithBufferBytes    an error in place of waiting
//	consumer, a bounded read    WithStop(StopAtEnd())                ends where the topic ended when it began
//	consumer, slow processing   WithPrefetchBytes                    memory against stalls
//
// # What is promised
//
// An acknowledged record is on stable storage of every replica. Records that one goroutine sends with one key are
// stored in that order, whatever is retried in between, and once, as long as no error said otherwise. An error with
// [OutcomeNotApplied] is a promise too: the record is not stored and will not be. [OutcomeUnknown] is neither: the
// record may be stored, once; the SDK does not send it again, since that might store it twice.
//
// # Limits
//
// Everything that queues is bounded. Records not yet acknowledged: WithBufferBytes, then senders wait or fail.
// Fetched data not yet polled: WithPrefetchBytes, then no fetch is begun. Batches on the way: five a range. Fetches
// on the way: four a broker, of one answer each (WithFetchMaxBytes). A watch: 10,000 events, and one answer of each node.
// Retries: the delivery timeout.
//
// # Non-obvious
//
// Invariants that are easy to break from a distance:
//
//   - A batch is stamped with its sequence number when it is first sent, not when it is sealed: one that is dropped
//     before leaves no gap.
//   - After a failed try nothing is sent until everything on the way has been answered; then all that is not
//     acknowledged goes again, in order, under the same sequence numbers. A broker remembers the last five batches of
//     a producer, and five is how many may be on the way: so each of them is recognised.
//   - After a failure the first batch goes alone. Sent five at a time over a connection that breaks at each third
//     request, they would never get anywhere.
//   - A batch whose fate is unknown, or that leaves a hole in the sequence, ends the identity: the range goes on under
//     the next epoch of the same id. The same id, so that the new epoch fences copies of the lost batch that may still
//     be on their way; a new id would let them in behind younger records.
//   - UnknownProducer does not make a batch unknown by itself. One that was never without an answer is known not to
//     be stored, and goes again under the next epoch: a producer that was idle for a day loses nothing.
//   - Callbacks of a range come in order because a batch that fails keeps its place in the queue until all before it
//     are finished, and because batches are handed to the finisher under the buffer's lock.
//   - Bytes that were given to a connection are not touched again unless that connection answered: one that has
//     failed may still be writing them. Hence the copies in batch.stamp and batch.request, and batch.escaped.
//   - The pump never holds the buffer's lock while it compresses or writes. The flag pumping keeps a second pump out,
//     or batches could reach the connection in another order than their sequence.
//   - Locks nest in one order only: buffer, then finisher or memory or topic table; a parent's buffer, then its
//     children's (recut.go). Consumer.mu is alone. None is held over a dial, a write or a wait.
//   - Routes do not expire. A wrong one is noticed by the error it causes, and renewed by one request that all who
//     met the error share. Another topic id under the same name is another topic: nothing that was meant for the old
//     one goes there.
//   - A broken connection is dialled again before anybody is asked who leads now: usually it is the connection. Refused,
//     or not there within a quarter of a second, the route is renewed from another broker, until it names another leader.
//   - A leader that does not answer is left only when the route names another. What was on its way there goes to the
//     successor under the same sequence numbers: an answer that comes all the same is not believed, and a batch that the
//     old leader did get onto every replica is recognised by the new one. Others than such a leader are asked about it
//     (broker.doubt): one that is cut off knows only what it used to.
//   - A replica that cannot serve an offset is asked once a round, whatever the reason: it lags, its copy is short or
//     damaged, it does not answer. The round after that begins with what the coordinator says. What a fetch that was
//     abandoned brings in the end is dropped by a flag and not by the range's generation, which would drop what was
//     fetched before it as well.
//   - Where ranges begin is in their topic's route. Nobody need be asked, so reading from the start works while leaders
//     are away; where ranges end only leaders know, and a consumer with StopAtEnd reads on while it asks.
//   - An answer to a fetch is tied to the generation of the range that asked; a seek raises it. Nothing older is
//     ever believed.
//   - "Nothing new" from a replica that knows a lower commit than another has shown is not believed either: the end of
//     a range never moves back.
package sdk
