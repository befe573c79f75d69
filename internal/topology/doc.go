// Package topology is what a node believes about the others: who is there, with which disk and start, and who is fit
// to take a new segment. It is pure: Reduce folds one Event into a View and returns the next one, and equal inputs
// give equal views. Events come from gossip, from the root's table of nodes, from what nodes report of their load, and from
// what this node makes of all that (Judged).
//
// A View is immutable and is passed around by value behind one atomic pointer. It is a belief, never a proof: no
// decision that could lose data rests on it alone (that is what fences and committed facts are for).
package topology
