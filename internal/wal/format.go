package wal

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// The encodings below are those of FORMAT.md; the pictures are repeated where the code is.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	pageBytes   = 4096
	headerBytes = pageBytes // the file header has a page of its own, so that no commit ever rewrites it
	frameHeader = 24
	markBytes   = frameHeader + 8
	align       = 8

	version = 1

	// maxEntry bounds one payload; larger than anything the broker accepts, small enough to be buffered at recovery.
	maxEntry = 1 << 30
)

var fileMagic = [8]byte{'E', 'G', 'W', 'A', 'L', '\r', '\n', 0x1a}

// fileID is drawn at random for each use of a file. It is in the file's name and header and goes into the checksum
// of each frame, so that the frames of an earlier use are not frames, and so that a payload that looks like a frame
// is not one either: whoever wrote it does not know the id.
type fileID uint64

func randomID() (fileID, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, err
	}
	return fileID(binary.LittleEndian.Uint64(b[:])), nil
}

func (id fileID) seed() uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(id))
	return crc32.Update(0, castagnoli, b[:])
}

// header is the first page of a file.
//
//	 0        8     12      16       24       32       40       48                64
//	+--------+------+-------+--------+--------+--------+--------+-----------------+-- zeros to 4096
//	| magic  | crc  | vers. | seq    | id     | base   | size   | uuid of disk    |
//	+--------+------+-------+--------+--------+--------+--------+-----------------+--
//
// crc covers bytes 12 to 63.
type header struct {
	version uint32
	seq     uint64
	id      fileID
	base    LSN   // where the file before this one ended
	size    int64 // of this file, for ever
	uuid    base.UUID
}

const headerUsed = 64

func (h header) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, fileMagic[:])
	le := binary.LittleEndian
	le.PutUint32(b[12:], version)
	le.PutUint64(b[16:], h.seq)
	le.PutUint64(b[24:], uint64(h.id))
	le.PutUint64(b[32:], uint64(h.base))
	le.PutUint64(b[40:], uint64(h.size))
	copy(b[48:], h.uuid[:])
	sumHeader(b)
	return b
}

func sumHeader(b []byte) {
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:headerUsed], castagnoli))
}

func decodeHeader(b []byte) (h header, ok bool) {
	if len(b) < headerUsed || [8]byte(b[:8]) != fileMagic {
		return h, false
	}
	le := binary.LittleEndian
	if le.Uint32(b[8:]) != crc32.Checksum(b[12:headerUsed], castagnoli) {
		return h, false
	}
	h = header{
		version: le.Uint32(b[12:]),
		seq:     le.Uint64(b[16:]),
		id:      fileID(le.Uint64(b[24:])),
		base:    LSN(le.Uint64(b[32:])),
		size:    int64(le.Uint64(b[40:])),
	}
	copy(h.uuid[:], b[48:])
	return h, true
}

// frameType tells the two kinds of frames apart. Zero is not one of them: zeros are not a frame.
type frameType uint8

const (
	typeMark  frameType = 1 // states the durable LSN
	typeEntry frameType = 2
)

// frame is the header of a frame; its payload follows, and zeros up to a multiple of 8.
//
//	 0      4      8          16       20   21   22     24
//	+------+------+----------+--------+----+----+------+---------------------------+---------+
//	| crc  | body | lsn      | length | ty | ki | zero | payload: length bytes     | 0-7 × 0 |
//	+------+------+----------+--------+----+----+------+---------------------------+---------+
//
// crc is the CRC32C of the file id's 8 bytes and bytes 4 to 23; body is that of the payload; lsn is the frame's own
// position. The payload of a mark is the durable LSN.
type frame struct {
	body   uint32
	lsn    LSN
	length uint32
	typ    frameType
	kind   uint8
}

// frameBytes is the room that a payload of n bytes takes.
func frameBytes(n int64) int64 { return frameHeader + (n+align-1)&^(align-1) }

func (f frame) end() LSN { return f.lsn + LSN(frameBytes(int64(f.length))) }

func (f frame) append(b []byte, seed uint32) []byte {
	at := len(b)
	le := binary.LittleEndian
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, f.body)
	b = le.AppendUint64(b, uint64(f.lsn))
	b = le.AppendUint32(b, f.length)
	b = append(b, byte(f.typ), f.kind, 0, 0)
	le.PutUint32(b[at:], crc32.Update(seed, castagnoli, b[at+4:]))
	return b
}

func decodeFrame(b []byte, seed uint32) (f frame, ok bool) {
	le := binary.LittleEndian
	f = frame{
		body:   le.Uint32(b[4:]),
		lsn:    LSN(le.Uint64(b[8:])),
		length: le.Uint32(b[16:]),
		typ:    frameType(b[20]),
		kind:   b[21],
	}
	ok = le.Uint32(b) == crc32.Update(seed, castagnoli, b[4:frameHeader]) &&
		(f.typ == typeEntry || f.typ == typeMark && f.length == 8)
	return f, ok
}

// appendMark appends the frame at lsn that states durable.
func appendMark(b []byte, seed uint32, lsn, durable LSN) []byte {
	var payload [8]byte
	binary.LittleEndian.PutUint64(payload[:], uint64(durable))
	f := frame{body: crc32.Checksum(payload[:], castagnoli), lsn: lsn, length: 8, typ: typeMark}
	return append(f.append(b, seed), payload[:]...)
}

const (
	logSuffix   = ".wal"
	spareSuffix = ".spare"
)

// A file in use is named after its sequence number and id, a spare one after a number alone.
func logName(seq uint64, id fileID) string {
	return fmt.Sprintf("%016x-%016x%s", seq, uint64(id), logSuffix)
}

func spareName(seq uint64) string { return fmt.Sprintf("%016x%s", seq, spareSuffix) }

func parseLogName(name string) (seq uint64, id fileID, ok bool) {
	stem, ok := strings.CutSuffix(name, logSuffix)
	s, i, cut := strings.Cut(stem, "-")
	if !ok || !cut || len(s) != 16 || len(i) != 16 {
		return 0, 0, false
	}
	seq, errSeq := strconv.ParseUint(s, 16, 64)
	n, errID := strconv.ParseUint(i, 16, 64)
	return seq, fileID(n), errSeq == nil && errID == nil && name == logName(seq, fileID(n))
}

func parseSpareName(name string) (seq uint64, ok bool) {
	stem, ok := strings.CutSuffix(name, spareSuffix)
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(stem, 16, 64)
	return seq, err == nil && name == spareName(seq)
}
