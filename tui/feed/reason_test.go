package feed

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestReason(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 37150}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2921}
	about := func(cause error) error {
		return base.Wrap(base.CodeUnreachable, "list nodes", base.Wrap(base.CodeUnreachable, "connect to 127.0.0.1:2921", cause))
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{about(&net.OpError{Op: "dial", Net: "tcp", Addr: there, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "list nodes: connect to 127.0.0.1:2921: connection refused"},
		{about(&net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "list nodes: connect to 127.0.0.1:2921: connection reset by peer"},
		{about(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "n1", IsNotFound: true}}), "list nodes: connect to 127.0.0.1:2921: lookup n1: no such host"},
		{about(io.EOF), "list nodes: connect to 127.0.0.1:2921: EOF"},
		{errors.Join(context.Canceled), "context canceled"},
	} {
		require.Equal(t, c.want, reason(c.err))
	}
}
