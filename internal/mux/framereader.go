package mux

import (
	"bufio"
	"errors"
	"io"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	readBuffer = 16 << 10
	// trust is how much is allocated on the strength of a header alone. A frame that claims more gets the rest
	// once this much of it has arrived, so that headers alone do not cost memory.
	trust = 2 << 20
	// answerTrust is the same for answers of a broker that has shaken hands: few, and asked for. It covers a whole
	// fetch, for a second allocation and its copy cost a consumer a tenth of its speed.
	answerTrust = 16 << 20
)

// frameReader reads frames from one direction of a connection.
type frameReader struct {
	src   *bufio.Reader
	trust int
}

func newFrameReader(r io.Reader) frameReader {
	return frameReader{src: bufio.NewReaderSize(r, readBuffer), trust: trust}
}

// header waits for the next frame and returns its checked header. At the end of the stream it returns io.EOF
// between two frames and errCut within one. An error of the reader beneath, a timeout for one, is returned
// as it is, nothing is lost and header may be called again.
func (f *frameReader) header() (wire.FrameHeader, error) {
	// What is no frame at all is found at its second byte already: who sends an HTTP request should not have to
	// wait for more.
	b, err := f.src.Peek(2)
	if err != nil {
		return wire.FrameHeader{}, f.ended(err, len(b))
	}
	if b[0] != wire.Magic>>8 || b[1] != wire.Magic&0xff {
		return wire.FrameHeader{}, base.Errorf(base.CodeCorruptFrame, "read frame", "the bytes received are not a frame: they begin with %q", b)
	}
	b, err = f.src.Peek(wire.FrameSize)
	if err != nil {
		return wire.FrameHeader{}, f.ended(err, len(b))
	}
	h, err := wire.ParseFrameHeader(b)
	if err != nil {
		return h, err
	}
	_, err = f.src.Discard(wire.FrameSize)
	return h, err
}

// body reads what follows a header, into one allocation (two for the few that are above f.trust). take is asked for
// leave before each, nil gives it; without leave the body is read and dropped, and the error is errNoRoom.
func (f *frameReader) body(h wire.FrameHeader, take func(bytes int) bool) (msg, payload []byte, err error) {
	n := h.BodyLen()
	var body []byte
	for _, size := range [2]int{min(n, f.trust), n} {
		if size == len(body) {
			continue
		}
		if take != nil && !take(size-len(body)) {
			return nil, nil, f.drop(n - len(body))
		}
		larger := make([]byte, size)
		rest := larger[copy(larger, body):]
		if _, err := io.ReadFull(f.src, rest); err != nil {
			return nil, nil, f.cut(err)
		}
		body = larger
	}
	if n == 0 {
		return nil, nil, nil
	}
	m := int(h.MessageLen)
	return body[:m:m], body[m:], nil
}

// errNoRoom says that a frame was read and not kept.
var errNoRoom = errors.New("no memory for the frame")

func (f *frameReader) drop(n int) error {
	if _, err := io.CopyN(io.Discard, f.src, int64(n)); err != nil {
		return f.cut(err)
	}
	return errNoRoom
}

// skip reads what follows a header and keeps nothing.
func (f *frameReader) skip(h wire.FrameHeader) error {
	_, err := io.CopyN(io.Discard, f.src, int64(h.BodyLen()))
	return f.cut(err)
}

// ready reports whether the next frame can be read without waiting.
func (f *frameReader) ready() bool {
	if f.src.Buffered() < wire.FrameSize {
		return false
	}
	b, err := f.src.Peek(wire.FrameSize)
	if err != nil {
		return false
	}
	h, err := wire.ParseFrameHeader(b)
	return err != nil || f.src.Buffered() >= wire.FrameSize+h.BodyLen()
}

// partial reports whether some of the next frame has arrived.
func (f *frameReader) partial() bool { return f.src.Buffered() > 0 }

func (f *frameReader) ended(err error, got int) error {
	if errors.Is(err, io.EOF) && got > 0 {
		return errCut
	}
	return err
}

func (f *frameReader) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// errCut is no *base.Error: what it means depends on the side. To a server it is a corrupt frame, to a client a
// lost connection.
var errCut = errors.New("the connection ended within a frame")
