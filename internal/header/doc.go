// Package header knows the first 61 bytes of a Kafka v2 record batch, which is all the broker ever reads of one.
//
// A batch is the unit of write, compression, replication and fetch. The broker checks it once, on arrival
// ([Check]), writes its own base offset and leader epoch into it ([Patch]), and from then on moves the bytes
// untouched: into the log, to the followers, to the segment file and out to consumers. Both patched fields lie
// before the range that the batch's CRC covers, so neither needs the records behind the header to be read again.
//
// Everything here is a function of its arguments and none of it allocates, errors aside.
package header
