// Package keyspace is the 64-bit hashed key space that the ranges of a topic divide among themselves.
//
// A [Span] is a half-open slice of it. The spans of a topic's active ranges tile the space exactly
// ([CheckCover]); a split cuts one span in two ([Span.SplitAt], [Span.Halves]) and only the two halves of one
// split may merge again ([Buddies], [Merge]), which keeps the tiling a tree.
//
// The key to everything is that 2^64 does not fit in a uint64: a span whose End is 0 reaches to the end of the
// space, so that the zero Span is the whole of it. No span is empty.
package keyspace
