package mux

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// Dialer opens the byte stream under a connection.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// ClientOptions are the settings of Dial; zero fields get defaults.
type ClientOptions struct {
	Dial             Dialer            // TCP, dual stack
	Hello            wire.HelloRequest // versions are filled in
	HandshakeTimeout time.Duration     // 10 s
	MaxInFlight      int               // requests without an answer; beyond it Go fails with CodeBusy. 4,096
	WriteQueueBytes  int64             // bytes the kernel has not taken yet; beyond it Go fails with CodeBusy. 128 MiB
	WriteTimeout     time.Duration     // without progress, on top of 1 s a MiB; then the connection fails. 60 s
	Logger           *slog.Logger      // none
	Guard            task.Guard        // of the connection's goroutines; none
}

func (o ClientOptions) withDefaults() ClientOptions {
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	if o.HandshakeTimeout == 0 {
		o.HandshakeTimeout = 10 * time.Second
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 4096
	}
	if o.WriteQueueBytes == 0 {
		o.WriteQueueBytes = 128 << 20
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Hello.MinVersion, o.Hello.MaxVersion = wire.MinVersion, wire.Version
	return o
}

// Dial opens a connection to addr and shakes hands. The error is a *base.Error: CodeUnreachable when there is
// nobody, CodeCorruptFrame when what answers is no broker, or the broker's own reason to refuse.
func Dial(ctx context.Context, addr string, o ClientOptions) (*Conn, error) {
	o = o.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	nc, err := o.Dial(ctx, addr)
	if err != nil {
		return nil, dialError(ctx, addr, err)
	}
	in, hello, err := shakeHands(ctx, nc, o)
	if err != nil {
		_ = nc.Close()
		return nil, dialError(ctx, addr, err)
	}
	in.trust = answerTrust
	return newConn(nc, in, addr, hello, o), nil
}

// shakeHands sends a hello and reads its answer, within ctx.
func shakeHands(ctx context.Context, nc net.Conn, o ClientOptions) (frameReader, wire.HelloResponse, error) {
	// A context cannot interrupt a read, a deadline in the past can.
	stop := context.AfterFunc(ctx, o.Guard.Func(func() { _ = nc.SetDeadline(time.Unix(1, 0)) }))
	defer stop()

	in := newFrameReader(nc)
	msg := wire.Encode(o.Hello)
	frame := wire.FrameHeader{Version: wire.Version, Kind: wire.KindHello, MessageLen: uint32(len(msg)), RequestID: helloID}.Append(nil)
	if _, err := nc.Write(append(frame, msg...)); err != nil {
		return in, wire.HelloResponse{}, err
	}
	hello, err := readHello(&in)
	if err == nil && !stop() {
		err = ctx.Err() // the deadline in the past may be set at any moment now
	}
	return in, hello, err
}

// helloID is the request id of the hello; calls count on from it.
const helloID = 1

func readHello(in *frameReader) (wire.HelloResponse, error) {
	var hello wire.HelloResponse
	h, err := in.header()
	if err != nil {
		return hello, err
	}
	if h.Flags&wire.FlagResponse == 0 || h.PayloadLen != 0 {
		return hello, base.Errorf(base.CodeCorruptFrame, "shake hands", "the first frame is no answer to a hello")
	}
	msg, _, err := in.body(h, nil)
	if err != nil {
		return hello, err
	}
	if h.Flags&wire.FlagError != 0 {
		return hello, wire.DecodeError(msg)
	}
	if err := wire.Decode(msg, &hello); err != nil {
		return hello, err
	}
	if v := hello.ProtocolVersion; v < wire.MinVersion || v > wire.Version {
		return hello, base.Errorf(base.CodeUnsupportedVersion, "shake hands", "the broker chose protocol version %d; %d to %d are spoken here", v, wire.MinVersion, wire.Version)
	}
	return hello, nil
}

func dialError(ctx context.Context, addr string, err error) *base.Error {
	op := "connect to " + addr
	var e *base.Error
	switch {
	case errors.As(err, &e):
		return base.Wrap(e.Code, op, err)
	case errors.Is(context.Cause(ctx), context.Canceled):
		return base.Wrap(base.CodeCanceled, op, context.Canceled)
	case ctx.Err() != nil:
		return base.Errorf(base.CodeUnreachable, op, "no answer in time: %w", ctx.Err())
	}
	if errors.Is(err, io.EOF) { // by itself it says neither who nor why
		return base.Errorf(base.CodeUnreachable, op, "%s closed the connection without an answer: %w", addr, err).
			WithHint("check that the port is a broker's client port")
	}
	return base.Wrap(base.CodeUnreachable, op, err)
}
