// Package topology is what a node believes about the others: who is there, with which disk and start, and who is fit
// to take a new segment. It is pure: Reduce folds one Event into a View and returns the next one, and equal inputs
// give equal views. Events come from the local node today; gossip will send the same ones about all of them.
//
// A View is immutable and is passed around by value behind one atomic pointer. It is a belief, never a proof: no
// decision that could lose data rests on it alone (that is what fences and committed facts are for).
package topology
