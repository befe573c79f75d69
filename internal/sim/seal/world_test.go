package seal

// bounds say what may happen in a world. What a world leaves out, another one has: the product of all would take days.
type bounds struct {
	batches  uint8 // how many producers send
	segments uint8 // how many there are at most, one after the other
	freezes  uint8 // how often a leader gives up on a replica that it thinks is late, or begins a planned roll
	fences   uint8 // how many segments, from the first, have a leader that coordinators may think dead
	stale    bool  // a second coordinator, whose proposal may be committed at any time after it was planned

	crashes [replicas]uint8 // how often each node is killed; it restarts, at once or after any delay
	rots    [replicas]uint8 // how many durable records its log silently loses in one such restart
	wipes   [replicas]uint8 // how often its disk is replaced by an empty one, under the same name
	files   [replicas]uint8 // how often a segment's file disappears from under it

	memory  bool // the topic acks what all replicas have taken, durable or not
	readers bool // followers hear of commits, and readers read from them
	tellAll bool // every replica may hear where a segment ended; else only those that lead it or the next one
	losses  bool // a follower that refuses tells the leader so; else the leader only ever gives up by a freeze
	late    bool // opens of followers may be late, those of the first segment too; else a segment that is open is open on all
	retire  bool // a leader without anything to do is dropped, and made again for the next batch
	behind  bool // a coordinator may take a node that has restarted for the process before
	alive   bool // a coordinator may also seal by fences what has a leader that lives, and place it again
}

// last reports whether a segment is one that nobody can end.
func (b *bounds) last(seg int) bool {
	return seg > 0 && seg == int(b.segments)-1 && seg >= int(b.fences)
}

// world is one state of the whole system, comparable and without pointers. Ids of cores and of metadata are the model's.
type world struct {
	nodes  [replicas]node
	net    [maxSegments]net
	meta   metaID
	stale  commandID // the proposal of the coordinator that is no longer, or not yet, the only one
	ghosts ghosts

	freezes uint8 // so far
}

// ghosts are what a bystander who sees everything has noted. No decision looks at them.
type ghosts struct {
	payloads uint8              // handed out so far
	seen     [maxRecords]uint8  // the payload that somebody was told of at this offset: a producer by its ack, or a reader
	acked    [maxRecords]uint8  // the segment, from 1, whose leader acked it because all replicas had
	counted  [maxSegments]uint8 // bit a node: its unbroken extent was before the coordinator that sealed the segment
	lossy    uint8              // bit a segment: it is on record that acked records above its end may be gone
}
