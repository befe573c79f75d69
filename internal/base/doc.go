// Package base holds the nouns every other package shares: ids, epochs, causes, topic settings and the one
// table of error codes. It has no behaviour beyond parsing, printing, ordering and validating them.
//
// Offsets follow one convention everywhere: end, commit, durable end and base are each the offset of the
// *next* record, so an interval of offsets is always [base, end).
package base
