package server

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// Whoever wrote the list of seeds is told what to mend in it, and not how this node's messages are called.
func TestInTheWay(t *testing.T) {
	over := func(err error) error { return base.Wrap(base.CodeOf(err), "control/9 to 10.0.0.2:2921", err) }
	for want, err := range map[string]error{
		"it speaks another protocol (a header begins with 45 47 01 03): name the node's cluster_port": over(base.Errorf(base.CodeCorruptFrame, "read frame", "a header begins with 45 47 01 03")),
		"connection refused": over(base.Wrap(base.CodeUnreachable, "dial", syscall.ECONNREFUSED)),
		"it does not answer (read: i/o timeout): name the node's cluster_port": over(base.Wrap(base.CodeUnreachable, "", fmt.Errorf("read: %w", os.ErrDeadlineExceeded))),
		"no such host": fmt.Errorf("no such host"),
	} {
		require.Equal(t, want, inTheWay(err))
	}
}
