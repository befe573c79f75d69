// Package wire is the native protocol: frames, and the messages in them. PROTOCOL.md beside this file documents
// every byte.
//
// A frame is a fixed header ([FrameHeader]), a message and a payload. The message says what is asked or answered;
// the payload is record batches that nobody on the way opens. Messages of the data path (produce, fetch) have a
// fixed layout, drawn above the code that writes it; all others are plain structs in CBOR with integer keys, where
// a field may be added and never renumbered, and an old reader skips what it does not know.
//
// One request travels like this: [Encode] makes the message, package mux puts a frame around it and sends it, the
// server's mux reads the header, checks its lengths with [ParseFrameHeader] before it allocates, and hands message
// and payload to a handler, which calls [Decode]. The answer comes back the same way, or as an error frame
// ([EncodeError], [DecodeError]).
package wire
