package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/eastguard/eastguard/internal/base"
)

// Kind says what a message is: its class in the upper byte, its type within the class in the lower. Classes are the
// tags of frames; types are handed out by whoever registers the handler, and never change their meaning.
type Kind uint16

// The classes. A kind is a class plus its type: Control+3.
const (
	link     Kind = 0x0000 // the connection's own: hello, ping, pong
	Control  Kind = 0x0100 // orders and questions between nodes
	Raft     Kind = 0x0200 // by group
	Snapshot Kind = 0x0300 // on the bulk lane
	Replica  Kind = 0x0400 // on the data lane: batches and their acks, which want no answer
)

// The types of class link.
const (
	kindHello = link + 1
	kindPing  = link + 2
)

func (k Kind) class() Kind { return k & 0xff00 }

// lane is which connection carries the kind.
func (k Kind) lane() laneID {
	switch k.class() {
	case Snapshot:
		return bulkLane
	case Replica:
		return dataLane
	}
	return mainLane
}

// String prints the class and the type: raft/2.
func (k Kind) String() string {
	name := fmt.Sprintf("class-%d", k>>8)
	switch k.class() {
	case link:
		name = "link"
	case Control:
		name = "control"
	case Raft:
		name = "raft"
	case Snapshot:
		name = "snapshot"
	case Replica:
		name = "replica"
	}
	return fmt.Sprintf("%s/%d", name, k&0xff)
}

// Sizes of frames.
const (
	headerSize = 24
	// MaxBody is the largest message.
	MaxBody = 16 << 20
	// MaxDataBody is the largest message of class Replica: the largest batch, and what goes before it.
	MaxDataBody  = 66 << 20
	maxHello     = 4 << 10
	frameMagic   = 0xe6
	readBuffer   = 64 << 10
	bodyAtATime  = 1 << 20 // allocated on the strength of a header; the rest follows as the body arrives
	dataAtATime  = 2 << 20 // on the data lane: a usual batch with its head, in one piece
	flagResponse = 1
	flagError    = 2
)

// frame is one message on a connection, big-endian:
//
//	 0        1        2        3        4                                 8
//	+--------+--------+--------+--------+---------------------------------+
//	| tag    | type   | flags  | 0xe6   | length of the body              |
//	+--------+--------+--------+--------+---------------------------------+
//	| group                             | CRC32C                          |
//	+-----------------------------------+---------------------------------+
//	| request id                                                          |
//	+---------------------------------------------------------------------+
//	| body                                                                |
//
// Tag and type are the kind. Flags: 1 answer, 2 error (the body is a wire.ErrorMessage). The sum covers the header,
// with zeroes in its own place, and the body. Request id 0 wants no answer.
//
// A frame of class Replica has, in place of the group, how many bytes of the body the sum covers. Behind those is a
// batch, which has a sum of its own that is checked by whoever takes it.
type frame struct {
	kind   Kind
	flags  uint8
	group  uint32
	id     uint64
	body   []byte
	tail   [][]byte // more of the body, when it is sent
	urgent bool     // it overtakes what waits to be written
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendHeader writes the 24 bytes before the body.
func (f *frame) appendHeader(dst []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(f.kind))
	dst = append(dst, f.flags, frameMagic)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.size()-headerSize))
	dst = binary.BigEndian.AppendUint32(dst, f.group)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint64(dst, f.id)
	binary.BigEndian.PutUint32(dst[at+12:], sum(dst[at:], f.body))
	return dst
}

// sum is the CRC of a header, whose sum field is zero, and a body.
func sum(header, body []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header), castagnoli, body)
}

func (f *frame) size() int {
	n := headerSize + len(f.body)
	for _, part := range f.tail {
		n += len(part)
	}
	return n
}

// errCut says that a connection ended within a frame.
var errCut = errors.New("the connection ended within a frame")

// frameReader reads frames from one direction of a connection.
type frameReader struct {
	src     *bufio.Reader
	header  [headerSize]byte
	atATime int // allocated on the strength of a header
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{src: bufio.NewReaderSize(r, readBuffer), atATime: bodyAtATime}
}

// next waits for a frame of at most limit bytes of body. At the end of the stream it returns io.EOF between two
// frames and errCut within one; CodeCorruptFrame for what is no frame. The body belongs to the caller.
func (r *frameReader) next(limit int) (frame, error) {
	h := r.header[:]
	if _, err := io.ReadFull(r.src, h); err != nil {
		return frame{}, cut(err, io.ErrUnexpectedEOF)
	}
	if h[3] != frameMagic {
		return frame{}, corrupt("a header begins with % x", h[:4])
	}
	n := binary.BigEndian.Uint32(h[4:])
	if int64(n) > int64(limit) {
		return frame{}, corrupt("a body of %d bytes; %d are allowed", n, limit)
	}
	f := frame{
		kind:  Kind(binary.BigEndian.Uint16(h)),
		flags: h[2],
		group: binary.BigEndian.Uint32(h[8:]),
		id:    binary.BigEndian.Uint64(h[16:]),
	}
	var err error
	if f.body, err = r.body(int(n)); err != nil {
		return frame{}, err
	}
	covered := f.body
	if f.kind.class() == Replica {
		if int64(f.group) > int64(n) {
			return frame{}, corrupt("a sum over %d bytes of a body of %d", f.group, n)
		}
		covered = f.body[:f.group]
	}
	want := binary.BigEndian.Uint32(h[12:])
	clear(h[12:16])
	if got := sum(h, covered); got != want {
		return frame{}, corrupt("checksum %08x, computed %08x", want, got)
	}
	return f, nil
}

// body reads n bytes. Headers alone do not cost memory: beyond the first piece each allocation doubles what has
// arrived already.
func (r *frameReader) body(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	var b []byte
	for size := min(n, r.atATime); ; size = min(n, 2*size) {
		larger := make([]byte, size)
		if _, err := io.ReadFull(r.src, larger[copy(larger, b):]); err != nil {
			return nil, cut(err, io.EOF, io.ErrUnexpectedEOF)
		}
		if b = larger; size == n {
			return b, nil
		}
	}
}

// cut turns the given ends of a stream into errCut.
func cut(err error, ends ...error) error {
	for _, end := range ends {
		if errors.Is(err, end) {
			return errCut
		}
	}
	return err
}

func corrupt(format string, args ...any) error {
	return base.Errorf(base.CodeCorruptFrame, "read frame", format, args...)
}
