// Package gossip tells a node who else is there. It adapts hashicorp/memberlist (SWIM with Lifeguard) and lets none of
// its types out.
//
// The nouns. A [Self] is what a node says of itself, at most 512 bytes of it. A life is one presence of a node in the
// membership: its boot, which counts starts, and its rename, which counts how often this start came back after it had
// been buried; memberlist knows it by the name NodeID#boot.rename. The book is the pure part: which lives were buried,
// which one of each node is the current one, and hence which word about a life is still worth hearing. A generation is
// one memberlist, under one name. An [Agent] owns them all. A [Claim] says which node leads a shard, and since which
// term. A [Snapshot] is everyone, suspects included.
//
// One death, end to end. Probes of n2#5.0 fail; its peers suspect it; nobody clears the suspicion, so memberlist calls
// NotifyLeave under its own lock, where the book buries the life and the agent is marked. The agent's loop reads all
// states, folds them into the next Snapshot and marks its subscribers. If n2 was only cut off, it speaks up later:
// memberlist would let a higher incarnation revive it, but NotifyAlive asks the book, which knows the grave. The life is
// refused and n2 is told so ([Buried] travels to it directly). It comes back as n2#5.1, in a new generation that starts
// with everybody the old one knew.
//
// What is not obvious:
//   - Dead is final for a name, so whoever acted on a death never has to take it back.
//   - memberlist hides suspects from its own API. A push-pull with no nodes to ourselves returns every node's state, so
//     the agent holds that conversation with its own memberlist, over a pipe, each time something changed and at least
//     every second or so (no callback tells of a suspicion).
//   - Its callbacks run under its lock: they take the book's lock, mark, and return. They never call memberlist.
//   - Its goroutines cannot be waited for. After Close they end by themselves, within its stream timeout of ten seconds;
//     a retired generation neither hears nor says anything, and its callbacks do nothing.
//   - It never dials the dead again, so a long partition would last for ever: the agent's own loop joins seeds and
//     members it has lost, with jitter, as long as it runs. It also compares notes with one living member after each round
//     that saw a change, because a broadcast reaches nearly everybody, not everybody.
//   - Messages that carry a bare name (suspect, dead) have no room for a cluster id: the label on every packet and stream
//     does that, and a life's metadata repeats it.
package gossip
