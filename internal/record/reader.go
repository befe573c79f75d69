package record

import "github.com/eastguard/eastguard/internal/header"

// Reader iterates over the records of batches. Not safe for concurrent use.
type Reader struct{}

// NewReader makes a Reader that refuses batches whose records take more than maxDecodedBytes when decompressed.
func NewReader(maxDecodedBytes int) *Reader { return &Reader{} }

// Reset begins a batch: it checks its header and CRC and decompresses its records.
func (r *Reader) Reset(batch []byte) error { return nil }

// Header is the batch's header.
func (r *Reader) Header() header.Header { return header.Header{} }

// Next returns the next record, or false at the end or at a record that cannot be decoded; see Err.
func (r *Reader) Next() (Record, bool) { return Record{}, false }

// Err is why Next stopped before the end.
func (r *Reader) Err() error { return nil }
