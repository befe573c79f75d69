// Package ring is the consistent-hash ring that decides which nodes a shard's voters should be, and later which
// member of a consumer group reads a range.
//
// Each member stands on the circle of 64-bit positions with many tokens, xxhash64 of its id and the token's number,
// so that every node computes the same ring from the same members and nobody has to be asked. A position belongs to
// the first token at or after it, clockwise ([Ring.Owner]); its copies belong to the distinct members that follow
// ([Ring.Walk]), spread over racks or whatever label was chosen.
//
// A member that joins takes positions from the others and moves nothing between them; one that leaves gives its own
// away and moves nothing else. That is all the ring promises: shares are even only as far as chance makes them so.
// With v tokens each, a member's share has a standard deviation of about 1/√v of the mean, 6 % at 256, and the
// largest of n shares lies the further above the mean the more members there are. The largest share over the mean,
// in the middle one of some hundred clusters of random names and in the worst of a hundred:
//
//	vnodes   3 members     10 members    30 members    100 members
//	    20   1.19   1.56   1.34   1.72   1.50   1.95   1.62   2.14
//	   256   1.05   1.15   1.09   1.21   1.13   1.25   1.16   1.26
//	   512   1.03   1.11   1.06   1.13   1.09   1.15   1.11   1.17
//	  1024   1.03   1.07   1.05   1.09   1.06   1.10   1.08   1.13
//
// Shares within 15 % of the mean, in nearly every cluster, take 1,024 tokens, which is therefore the default.
//
// A Ring is immutable and may be shared.
package ring
