// Package mux multiplexes requests over connections by request id.
package mux
