// Package seal explores the seal protocol exhaustively. It has no code but tests: a search through every order in which
// batches, acks, fences, freezes, rolls, crashes and lost disks can meet, that looks for an acked record that is gone.
//
// What is real. Every decision is taken by the code that ships: replica.Leader and replica.Follower say what is acked,
// planner.DecideEnd and planner.Make where a segment ends and who holds the next one, meta.State.Apply which of two
// rolls comes first. They are called once for each distinct question and the answer is remembered (cores_test.go,
// shard_test.go), so that a state of the whole system is a few dozen small numbers.
//
// What is modelled. A node is a log of records of which a prefix is durable, and what its process remembers
// (node_test.go). The rules of the shell between cores and log are written down in shell_test.go, each beside the name
// of the code that it mirrors. The network never forgets (net_test.go): whatever was sent can arrive at any later
// time, any number of times, in any order. That is more than connections can do to their messages, so what holds
// here holds there. Coordinators remember nothing and plan from any fence answers that were ever given: this is what
// two of them can do that fail over, overtake each other, and commit late what they once proposed.
//
// What is looked for is listed in check_test.go. plants_test.go breaks one rule at a time and demands that the search
// notices: a checker that finds nothing in a broken system proves nothing about a whole one.
//
// A world is the system with a budget of batches, segments and faults. seal_test.go lists them; each is searched to
// its end, or to a depth where that is said.
package seal
