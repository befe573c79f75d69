//go:build !linux

package mux

import "net"

// directWriter is for Linux only; elsewhere the writer goroutine writes everything.
type directWriter struct{}

func newDirectWriter(net.Conn) *directWriter { return nil }

func (*directWriter) write(*gather) bool { return false }
