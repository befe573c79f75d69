package dataplane

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

// The messages between the replicas of a segment. They are one-way: what one answers is a message of its own. Who sent
// it, and in which start of its process, is said by the connection. All integers are big-endian. A reader takes what it
// knows of a head and skips nothing: a head that is to grow gets a flag that says so.
//
// Each begins with the segment that it is about:
//
//	 0        4        8        12       16       20       24                32
//	+--------+--------+--------+--------+--------+--------+-----------------+
//	| topic                             | range  | epoch  | segment         |
//	+-----------------------------------+--------+--------+-----------------+
type segmentHead struct {
	ref     base.RangeRef
	epoch   base.Epoch
	segment base.SegmentID
}

const segmentHeadSize = 32

func (h *segmentHead) put(b []byte) {
	copy(b[:16], h.ref.Topic[:])
	binary.BigEndian.PutUint32(b[16:], uint32(h.ref.Range))
	binary.BigEndian.PutUint32(b[20:], uint32(h.epoch))
	binary.BigEndian.PutUint64(b[24:], uint64(h.segment))
}

func (h *segmentHead) get(b []byte) {
	copy(h.ref.Topic[:], b[:16])
	h.ref.Range = base.RangeID(binary.BigEndian.Uint32(b[16:]))
	h.epoch = base.Epoch(binary.BigEndian.Uint32(b[20:]))
	h.segment = base.SegmentID(binary.BigEndian.Uint64(b[24:]))
}

// openMessage says: I lead this segment, and at its base the range remembers what has this checksum. The state itself
// follows when the follower has asked for it.
//
//	 32                40                48                56       60
//	+-----------------+-----------------+-----------------+--------+- - - - +
//	| base            | opened, ms      | state checksum  | flags  | state  |
//	+-----------------+-----------------+-----------------+--------+- - - - +
//
// Flags: 1 keyed, 2 the state follows (else it is empty or the follower's to find), 4 acks need memory only.
type openMessage struct {
	segmentHead
	base     int64
	openedMs int64
	checksum uint64 // of the state at base
	keyed    bool
	memory   bool   // durability=replicated
	hasState bool   // state is what the range remembers at base
	state    []byte // rangestate's encoding; empty when there is nothing to remember
}

const (
	openHeadSize = 60

	openKeyed  = 1 << 0
	openState  = 1 << 1
	openMemory = 1 << 2
)

// encode returns the head. The state goes behind it by reference.
func (m *openMessage) encode() []byte {
	b := make([]byte, openHeadSize)
	m.put(b)
	binary.BigEndian.PutUint64(b[32:], uint64(m.base))
	binary.BigEndian.PutUint64(b[40:], uint64(m.openedMs))
	binary.BigEndian.PutUint64(b[48:], m.checksum)
	var flags uint32
	if m.keyed {
		flags |= openKeyed
	}
	if m.hasState {
		flags |= openState
	}
	if m.memory {
		flags |= openMemory
	}
	binary.BigEndian.PutUint32(b[56:], flags)
	return b
}

// decodeOpen reads a message; its state aliases b.
func decodeOpen(b []byte) (m openMessage, err error) {
	if len(b) < openHeadSize {
		return m, shortMessage("open", len(b))
	}
	m.get(b)
	m.base = int64(binary.BigEndian.Uint64(b[32:]))
	m.openedMs = int64(binary.BigEndian.Uint64(b[40:]))
	m.checksum = binary.BigEndian.Uint64(b[48:])
	flags := binary.BigEndian.Uint32(b[56:])
	m.keyed, m.hasState, m.memory = flags&openKeyed != 0, flags&openState != 0, flags&openMemory != 0
	if m.hasState {
		m.state = b[openHeadSize:]
	}
	if m.base < 0 {
		return m, badMessage("open", "base %d", m.base)
	}
	return m, nil
}

// appendMessage carries one batch, as it lies in the leader's log, and the leader's commit. Without a batch the commit
// alone is news, and first is where the next batch will begin: a follower that ends below it has missed something, and
// says so.
//
//	 32                40                48                56                64                72       76
//	+-----------------+-----------------+-----------------+-----------------+-----------------+--------+- - - - +
//	| first offset    | appended, ms    | commit          | routing hash from and to          | flags  | batch  |
//	+-----------------+-----------------+-----------------+-----------------+-----------------+--------+- - - - +
//
// Flags: 1 somebody traces the batch, 2 the segment is led no more (the other fields say nothing then).
type appendMessage struct {
	segmentHead
	first          int64
	appendMs       int64
	commit         int64
	spanLo, spanHi uint64
	traced         bool
	ended          bool
	batch          []byte
}

const (
	appendHeadSize = 76

	appendTraced = 1 << 0
	appendEnded  = 1 << 1
)

// put writes the head to b. The batch goes behind it by reference.
func (m *appendMessage) put(b *[appendHeadSize]byte) {
	m.segmentHead.put(b[:])
	binary.BigEndian.PutUint64(b[32:], uint64(m.first))
	binary.BigEndian.PutUint64(b[40:], uint64(m.appendMs))
	binary.BigEndian.PutUint64(b[48:], uint64(m.commit))
	binary.BigEndian.PutUint64(b[56:], m.spanLo)
	binary.BigEndian.PutUint64(b[64:], m.spanHi)
	var flags uint32
	if m.traced {
		flags |= appendTraced
	}
	if m.ended {
		flags |= appendEnded
	}
	binary.BigEndian.PutUint32(b[72:], flags)
}

// decodeAppend reads a message; its batch aliases b and is not looked into.
func decodeAppend(b []byte) (m appendMessage, err error) {
	if len(b) < appendHeadSize {
		return m, shortMessage("append", len(b))
	}
	m.get(b)
	m.first = int64(binary.BigEndian.Uint64(b[32:]))
	m.appendMs = int64(binary.BigEndian.Uint64(b[40:]))
	m.commit = int64(binary.BigEndian.Uint64(b[48:]))
	m.spanLo = binary.BigEndian.Uint64(b[56:])
	m.spanHi = binary.BigEndian.Uint64(b[64:])
	flags := binary.BigEndian.Uint32(b[72:])
	m.traced, m.ended = flags&appendTraced != 0, flags&appendEnded != 0
	m.batch = b[appendHeadSize:]
	if m.first < 0 || m.commit < 0 {
		return m, badMessage("append", "first offset %d, commit %d", m.first, m.commit)
	}
	return m, nil
}

// ackMessage is what a follower says of its copy.
//
//	 32                40       44  45  46
//	+-----------------+--------+---+---+
//	| end             | fsync  | s | r |     s: status, r: reason; fsync in microseconds
//	+-----------------+--------+---+---+
type ackMessage struct {
	segmentHead
	status ackStatus
	reason replica.Reason // of ackLost
	end    int64          // ackDurable: everything below is held as the topic wants it held; ackWant: send from there
	fsync  time.Duration
}

const ackSize = 46

// ackStatus says what an ack means.
type ackStatus uint8

const (
	ackDurable ackStatus = iota + 1
	ackWant              // something is missing behind end: send again from there
	ackState             // send the state as well
	ackLost              // this replica will never ack the segment again
)

func (s ackStatus) String() string {
	switch s {
	case ackDurable:
		return "durable"
	case ackWant:
		return "want"
	case ackState:
		return "state"
	case ackLost:
		return "lost"
	}
	return fmt.Sprintf("status_%d", uint8(s))
}

func (m *ackMessage) encode() []byte {
	b := make([]byte, ackSize)
	m.put(b)
	binary.BigEndian.PutUint64(b[32:], uint64(m.end))
	binary.BigEndian.PutUint32(b[40:], uint32(min(max(m.fsync.Microseconds(), 0), math.MaxUint32)))
	b[44], b[45] = byte(m.status), byte(m.reason)
	return b
}

func decodeAck(b []byte) (m ackMessage, err error) {
	if len(b) < ackSize {
		return m, shortMessage("ack", len(b))
	}
	m.get(b)
	m.end = int64(binary.BigEndian.Uint64(b[32:]))
	m.fsync = time.Duration(binary.BigEndian.Uint32(b[40:])) * time.Microsecond
	m.status, m.reason = ackStatus(b[44]), replica.Reason(b[45])
	if m.status < ackDurable || m.status > ackLost {
		return m, badMessage("ack", "%s", m.status)
	}
	if m.end < 0 {
		return m, badMessage("ack", "end %d", m.end)
	}
	return m, nil
}

const opReplicate = "replicate"

func shortMessage(what string, n int) error {
	return base.Errorf(base.CodeInvalidArgument, opReplicate, "%d bytes are no %s", n, what)
}

func badMessage(what, format string, args ...any) error {
	return base.Errorf(base.CodeInvalidArgument, opReplicate, "no %s: "+format, append([]any{what}, args...)...)
}
