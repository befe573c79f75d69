// Package nowait writes to TCP connections what the kernel takes at once, and never waits. So whoever has a few bytes to
// send does so itself, without the switch to a writer goroutine; what is left over is that goroutine's.
package nowait
