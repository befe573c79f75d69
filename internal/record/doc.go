// Package record builds and reads whole v2 batches, in the encoding that Kafka has for them. The SDK and the tools
// use it; the broker's write path does not, for it never looks behind a batch's header.
//
// A [Builder] encodes each record as it is appended, so that its size is always known and nothing is allocated for
// it; [Builder.Build] then compresses the whole (package header has the codecs), puts the 61-byte header in front
// and seals it with the CRC. A [Reader] goes the other way: it checks header and CRC, decompresses within its limit
// and hands out one [Record] after another, whose slices point into the decoded bytes.
//
// A record, every number a zigzag varint except attributes, lengths of -1 meaning null:
//
//	+--------+------+------------+-------------+---------+-----+-----------+-------+---------------+
//	| length | attr | time delta | offset delta| key len | key | value len | value | header count  |
//	+--------+------+------------+-------------+---------+-----+-----------+-------+---------------+
//	then for each header:
//	+---------+-----+-----------+-------+
//	| key len | key | value len | value |
//	+---------+-----+-----------+-------+
//
// Null, empty and absent are three things. A nil Key or Value is null, an empty one is empty, and only a header can
// be absent.
package record
