// Package pledge decides who founds a cluster when several fresh nodes start side by side (bootstrap_expect), so that
// its id is minted once. It is pure: a Core takes what happened and returns a Step, which says what must be durable
// before anything is said, and what to say then.
//
// The nouns. The list is the cluster addresses that the configuration names, with names resolved, and the node's own. The
// founders are the n lowest of it, n being more than half. The minter is the lowest. A pledge is a founder's promise to
// one minter, which is a node on a disk: it is made once, before any cluster is known, and kept for ever.
//
// One founding. Each tick the minter asks the founders that it has no answer of (Ask). A founder whose list and n are
// the same, and that has pledged to nobody else, writes the pledge down and says so (Answer). With a pledge of each of
// them the minter mints. Everybody else asks around until somebody knows the cluster id, and joins; whoever has seen
// one never pledges again.
//
// Why it mints once. A minter needs all founders, which are fixed by the list, and two lists of the same nodes have a
// founder in common because each takes more than half; that one pledges to a single minter. A minter that loses its
// disk is another minter to those who pledged before.
//
// Why the founders are fixed, when any n of the list would do to keep two minters apart: a minter that minted, lost its
// disk and came back empty would otherwise find n others the second time.
//
// What is not obvious: a pledge to a disk that is gone is kept, because whoever keeps it cannot know whether that disk
// has minted. The refusal says who holds the pledge and how to get out of it. The minter itself writes no pledge: it
// mints or it does not, and that alone is what counts.
package pledge
