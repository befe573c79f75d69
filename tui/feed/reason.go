package feed

import (
	"errors"
	"net"
	"os"
	"strings"
)

// reason is an error in as few words as say what could not be done and why. What the system calls of a connection add,
// which is its addresses once more, is left out; and what a broker says that has more to say than fits.
func reason(err error) string {
	text := err.Error()
	var op *net.OpError
	if !errors.As(err, &op) || op.Err == nil {
		return cut(text)
	}
	why := op.Err
	var call *os.SyscallError
	if errors.As(why, &call) {
		why = call.Err
	}
	return cut(strings.Replace(text, op.Error(), why.Error(), 1))
}
