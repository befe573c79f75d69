// Package storetest makes up what a cluster would say: streams of messages for tests, benchmarks and pictures, the same
// for the same seed. [Stream] runs a cluster of any size through an incident: splits, merges, rolls, a node that dies
// under load (suspect, dead, leaders move, segments are sealed with gaps), repair, a group that rebalances, and the
// node's return.
package storetest
