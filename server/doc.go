// Package server is the composition root of a broker: it starts the parts in order, wires them to each other, takes
// requests from the client port, and stops everything in the reverse order.
//
// The nouns. A [Server] is one broker in this process; boot.go is the story of its start and its end. The handler
// (handler.go) gives each request to the file named after it: produce.go, fetch.go, createtopic.go and so on. The rest
// are shared answers: catalog.go finds topics in the shards, describe.go puts metadata into the protocol's words.
//
// What coordinators and data planes of different nodes say to each other is in orders.go (tell, fence, inventory),
// rolls.go (a segment's end, asked of its coordinator) and rangestate.go (what a range remembers, asked of who led it
// before). What a client asks about a range whose segments are on several nodes is put together by extents.go and
// offsetbytime.go; redirect.go names the node to ask instead.
//
// Handlers run on the connection's reader goroutine and must not block. Produce is asynchronous to the end; fetches
// and metadata requests go to two bounded pools; a fetch that waits for data holds no goroutine at all.
package server
