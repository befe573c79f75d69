// Package mux carries many requests over one connection: pipelined, answered in any order, told apart by request
// id. It has a client side, [Conn], and a server side, [Server]; frames are those of package wire.
//
// One request: [Conn.Go] notes the call under a fresh id and puts a frame into the outbox. The server's reader
// goroutine reads the frame, admits it to the connection's window (or stops reading until there is room: that is
// the back-pressure a client feels) and calls the [Handler], which answers at once or later, from any goroutine,
// with [Request.Reply] or [Request.Fail]. The answer goes through the server's outbox; the client's reader finds
// the call by its id and runs its callback.
//
// The nouns:
//   - outbox: the frames waiting for the socket, and the pen, which one goroutine at a time holds to write.
//     Whoever finds the pen free on a quiet connection writes at once without blocking, so that a lone request
//     costs no goroutine switch; under load the writer goroutine holds it and whole queues leave in one writev.
//   - window: what a connection's requests hold, in number and bytes, until their answers are written.
//   - frameReader: reads headers, checks lengths, then allocates: once for message and payload together.
//   - call and [Request]: one request, as its client and its server see it.
//
// Goroutines: each connection has a reader and a writer, on both sides. Callbacks and handlers run on the reader
// and must not block.
package mux
