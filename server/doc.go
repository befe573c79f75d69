// Package server is the composition root of a broker: it starts the parts in order, wires them to each other, takes
// requests from the client port, and stops everything in the reverse order.
//
// The nouns. A [Server] is one broker in this process; boot.go is the story of its start and its end. The handler
// (handler.go) gives each request to the file named after it: produce.go, fetch.go, createtopic.go and so on. The rest
// are shared answers: catalog.go finds topics in the shards, describe.go puts metadata into the protocol's words.
//
// Who is there: ports.go and advertise.go say where this node is reached, join.go finds its cluster or found.go founds
// one, double.go ends a second process of the same node, admit.go has the root shard admit the start. membership.go folds
// the gossip, the root's list of nodes (nodetable.go) and what nodes report of their disks (usage.go) into one view and one
// ring; absences.go puts out who has been gone for too long; peers.go is the connections.
//
// Any node answers for all: forward.go takes a request about one shard to its leader, gather.go puts one question to the
// leaders of all shards (lists, sums.go, and search.go for a topic of which only the id is known), collect.go asks nodes
// about themselves. journal.go writes down what happens here, watchnode.go lets others follow it, admin.go is for machines.
//
// What coordinators and data planes of different nodes say to each other is in orders.go (tell, fence, inventory),
// rolls.go (a segment's end, asked of its coordinator) and rangestate.go (what a range remembers, asked of who led it
// before). What a client asks about a range whose segments are on several nodes is put together by extents.go and
// offsetbytime.go; redirect.go names the node to ask instead.
//
// Handlers run on the connection's reader goroutine and must not block. Produce is asynchronous to the end; fetches and
// what is asked of the whole cluster go to two bounded pools; a request about one shard has a goroutine of its own, counted
// by the router; a fetch that waits for data holds no goroutine at all. What other nodes ask is bounded by kind (served in
// orders.go) or by a crew.
package server
