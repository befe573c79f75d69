// Package ledger writes down what became of records in a cluster and judges it: what producers were told, what readers
// saw, what metadata committed, and what lies on every disk at the end.
//
// The nouns. A Record is one that a producer sent: a producer's number and a count, under a key, with a sum of its
// payload. An Ack says where a record was told to lie. A Read is one record seen by one reader; a Pass is a reader that
// reads everything once the cluster is quiet. A Segment is one that was committed, with the moment at which its seal
// was first seen. A Copy is what one disk holds of a segment, read from the disk itself. A Sighting is what a replica
// said of itself in the middle of the run.
//
// Judge holds the invariants against all of it, and names each problem by the invariant that is broken:
//
//	I1   every acked record is on every replica of its segment, and one replica at least holds the whole segment
//	I2   one payload a place, over all acks, reads and copies; offsets are dense, along segments too
//	I3   a producer's records with one key lie in the order in which they were sent
//	I4   no record lies twice
//	I5   nobody read what is not read later; a reader never goes back and leaves nothing out
//	I6   whole copies of a sealed segment are equal
//	I7   nothing is acked in a segment whose seal is committed, nor under another epoch than the segment's
//	I11  nothing is gone that no committed decision names
//	I12  to recover twice is to recover once
//	END  a sealed segment ends behind everything that was acked in it
//
// Judge is a pure function, and is tested itself: each bug that it is there to find is planted in a history.
package ledger
