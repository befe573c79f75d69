// Package planner is the coordinator's mind: committed metadata, a view of the nodes and what was observed go in,
// commands and explanations come out. It is pure; randomness is passed in, so a plan can be replayed.
//
// Four questions about topics are answered here, a file for each: where a segment goes (place.go), at which end a
// segment whose leader is gone is sealed (recover.go), what retention drops (retention.go), and which commands follow
// from all that (plan.go). And three about the shards themselves: what a shard's next change of membership is
// (seats.go), which of its voters should lead it (leaders.go), and who has been gone for too long (standing.go). Each
// answer comes with a sentence for people, also when it is "not yet".
package planner
