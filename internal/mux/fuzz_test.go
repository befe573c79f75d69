package mux

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/wire"
)

// FuzzServer sends any bytes to a server, after a proper hello: it answers or closes, and in the end holds nothing.
func FuzzServer(f *testing.F) {
	frame := func(h wire.FrameHeader, body string) []byte {
		h.Version = wire.Version
		h.MessageLen = uint32(len(body)) - h.PayloadLen
		return append(h.Append(nil), body...)
	}
	f.Add(frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: 2}, "hello"))
	f.Add(append(frame(wire.FrameHeader{Kind: wire.KindProduce, RequestID: 2, PayloadLen: 3}, "mpay"), frame(wire.FrameHeader{Kind: 999}, "?")...))
	f.Add(frame(wire.FrameHeader{Kind: wire.KindFetch, Flags: wire.FlagResponse}, ""))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte("EG"))
	hello := wire.Encode(wire.HelloRequest{MinVersion: wire.MinVersion, MaxVersion: wire.Version})
	head := frame(wire.FrameHeader{Kind: wire.KindHello, RequestID: 1}, string(hello))

	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewServer(options(HandlerFunc(echo)))
		client, server := net.Pipe()
		s.ServeConn(server)
		_ = client.SetDeadline(time.Now().Add(10 * time.Second))
		answers := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, client)
			answers <- err
		}()
		_, _ = client.Write(head)
		_, err := client.Write(b)
		if err == nil {
			_ = client.Close() // a pipe has no half-close
		}
		<-answers
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.InFlight != 0 || st.HeldBytes != 0 || st.Connections != 0 {
			t.Fatalf("left over: %+v", st)
		}
	})
}
