package wire

import (
	"encoding/binary"

	"github.com/eastguard/eastguard/internal/base"
)

// FrameSize is the length of a frame's header.
const FrameSize = 24

// Magic begins every frame: "EG". Read as the big-endian length that begins a Kafka request it would be 1.1 GB,
// more than any Kafka listener accepts, so that one port can tell the two protocols apart by the first two bytes.
const Magic = 0x4547

// Version is the protocol version of this package, MinVersion the oldest it can speak.
const (
	Version    = 1
	MinVersion = 1
)

// The most a frame may hold. A receiver may be stricter (ServerOptions of package mux), never laxer.
const (
	MaxMessage = 16 << 20
	MaxPayload = 65 << 20 // a batch with one record of 64 MiB, headers and all
)

// Flags of a frame.
type Flags uint8

// The flags. Unknown ones make a frame corrupt: a sender uses a new one only after the handshake has shown that
// the receiver knows it.
const (
	FlagResponse Flags = 1 << 0 // an answer; its request id is the request's
	FlagError    Flags = 1 << 1 // with FlagResponse: the message is an ErrorMessage
	FlagMore     Flags = 1 << 2 // with FlagResponse: more frames answer the same request
	FlagForward  Flags = 1 << 3 // on a request: the receiver may relay it one hop to the node that can serve it

	knownFlags = FlagResponse | FlagError | FlagMore | FlagForward
)

// FrameHeader begins every frame, in both directions. Numbers are big-endian.
//
//	0       2     3     4       6        8            12            16              24
//	+-------+-----+-----+-------+--------+------------+-------------+---------------+
//	| 'EG'  | ver |flags| kind  |  zero  | message len| payload len |  request id   |
//	+-------+-----+-----+-------+--------+------------+-------------+---------------+
//	| message: message len bytes                                                    |
//	+-------------------------------------------------------------------------------+
//	| payload: payload len bytes, whole batches, untouched                          |
//	+-------------------------------------------------------------------------------+
type FrameHeader struct {
	Version    uint8
	Flags      Flags
	Kind       Kind
	MessageLen uint32
	PayloadLen uint32
	RequestID  uint64 // chosen by the client, echoed by the server
}

// Append writes h at the end of dst.
func (h FrameHeader) Append(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, Magic)
	dst = append(dst, h.Version, byte(h.Flags))
	dst = be.AppendUint16(dst, uint16(h.Kind))
	dst = be.AppendUint16(dst, 0)
	dst = be.AppendUint32(dst, h.MessageLen)
	dst = be.AppendUint32(dst, h.PayloadLen)
	return be.AppendUint64(dst, h.RequestID)
}

// ParseFrameHeader reads a frame's header and checks it against the protocol's limits, so that its lengths may be
// allocated. Errors are CodeCorruptFrame, or CodeUnsupportedVersion for a frame of a version that this package
// does not speak. The fields are filled in either case as far as they mean anything.
func ParseFrameHeader(b []byte) (FrameHeader, error) {
	if len(b) < FrameSize {
		return FrameHeader{}, corruptFrame("%d bytes are too few for a frame header of %d", len(b), FrameSize)
	}
	be := binary.BigEndian
	h := FrameHeader{
		Version:    b[2],
		Flags:      Flags(b[3]),
		Kind:       Kind(be.Uint16(b[4:])),
		MessageLen: be.Uint32(b[8:]),
		PayloadLen: be.Uint32(b[12:]),
		RequestID:  be.Uint64(b[16:]),
	}
	magic, reserved := be.Uint16(b), be.Uint16(b[6:])
	switch {
	case magic != Magic:
		return h, corruptFrame("it begins with %#04x, not with the protocol's magic", magic)
	case h.Version < MinVersion || h.Version > Version:
		return h, base.Errorf(base.CodeUnsupportedVersion, "read frame", "frame of protocol version %d; %d to %d are spoken here", h.Version, MinVersion, Version)
	case h.Flags&^knownFlags != 0 || reserved != 0:
		return h, corruptFrame("flags %#02x, reserved %#04x: bits that this version does not know", uint8(h.Flags), reserved)
	case h.Flags&(FlagError|FlagMore) != 0 && h.Flags&FlagResponse == 0:
		return h, corruptFrame("flags %#02x on a request", uint8(h.Flags))
	case h.MessageLen > MaxMessage:
		return h, corruptFrame("a message of %d bytes, at most %d are allowed", h.MessageLen, MaxMessage)
	case h.PayloadLen > MaxPayload:
		return h, corruptFrame("a payload of %d bytes, at most %d are allowed", h.PayloadLen, MaxPayload)
	}
	return h, nil
}

// BodyLen is the number of bytes behind the header.
func (h FrameHeader) BodyLen() int { return int(h.MessageLen) + int(h.PayloadLen) }

func corruptFrame(format string, args ...any) *base.Error {
	return base.Errorf(base.CodeCorruptFrame, "read frame", format, args...)
}
