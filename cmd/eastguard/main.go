// Command eastguard runs one broker.
//
//	eastguard [flags]                         run until SIGTERM or SIGINT
//	eastguard config print|check [-o json]    each setting's value and where it came from
//	eastguard version
//
// The package only wires: settings come from internal/config, everything that lives from server. It is the one
// place that may end the process, with 0 after a graceful stop, 1 when the broker could not start or stop, 2 for
// a wrong command line or configuration, 74 when stable storage failed, and 128 plus the signal's number when a
// second signal cuts a graceful stop short.
package main

import (
	"net"
	"os"
	"os/signal"
	"syscall"

	xterm "golang.org/x/term"

	"github.com/eastguard/eastguard/internal/term"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	a := &app{
		args:       os.Args[1:],
		env:        os.Environ(),
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		colour:     term.ColorAuto.On(xterm.IsTerminal(int(os.Stderr.Fd())), os.Getenv),
		readFile:   os.ReadFile,
		interfaces: net.InterfaceAddrs,
		signals:    signals,
		newBroker:  newBroker,
	}
	os.Exit(a.run())
}
