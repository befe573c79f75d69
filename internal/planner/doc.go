// Package planner is the coordinator's mind: committed metadata, a view of the nodes and what was observed go in,
// commands and explanations come out. It is pure; randomness is passed in, so a plan can be replayed.
//
// Questions about topics are answered here, a file for each: on which nodes a segment goes (place.go, choice.go), who of
// the segment's replicas goes on when it ends (successor.go), at which end a segment whose leader is gone is sealed
// (recover.go) or, if nobody can prove one, is ended by force (forceseal.go), which active segments should roll although
// nobody is held up (renew.go), what retention drops (retention.go), and which commands follow from all that (plan.go).
//
// Two memories judge the nodes: how often they have started (starts.go), and whom leaders find slow (slow.go). What they
// say comes back as part of the view.
//
// And three questions are about the shards themselves: what a shard's next change of membership is (seats.go), which of
// its voters should lead it (leaders.go), and who has been gone for too long (standing.go). Each answer comes with a
// sentence for people, also when it is "not yet".
package planner
