// Package routing brings a request about one metadata shard to the node that leads the shard, from whichever node the
// client asked.
//
// One request: Router.Do looks where the leader is believed to be (Claim). If that is here, the request is served here;
// else its bytes go to that node as they came, in an envelope that says for which shard they are and which nodes they
// have passed. That node serves them, or passes them on once, and the answer comes back the same way with the name and
// the term of who served it. An answer of the kind "not me" corrects the belief, and the request is tried elsewhere:
// first where the refusal points, then with the shard's voters, then with anybody. When nobody leads, the request waits
// for a claim to change, until its deadline.
//
// The nouns:
//   - Claim: who leads a shard, since which term. It is a hint; the newest of four sources counts: the replica here, the
//     gossip, the answers to earlier requests, and what a refusal says. A doubt is a claim that has proved wrong.
//   - trip: one request on its way from the node where the client put it. Only that node retries and waits; those that
//     it passes try once.
//   - attempt: one try of a trip. The watcher ends it when a newer leader is known or the node has gone silent, for an
//     answer to a request under way would otherwise be awaited for seconds.
//   - gate: bounds what is under way, in all and for each shard, so that a shard without a leader holds up nobody else.
//
// What is not obvious: a change whose answer was lost is unknown. It is tried again only if it carries a request id, by
// which the shard recognises it and answers what it answered the first time; without one, unknown is the answer.
package routing
