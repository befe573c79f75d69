package shard

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// recordKind is the kind of a record in the shared log; append-only, they are stored.
type recordKind uint8

const (
	recordEntries    recordKind = 1 // entries of a group: they replace those at and above their first index
	recordStable     recordKind = 2 // values of a group's stable store
	recordDelete     recordKind = 3 // a prefix or suffix of a group's entries is gone
	recordCheckpoint recordKind = 4 // all that a group holds: what came before it is not needed
)

// record is one record of the shared log. All integers are unsigned varints unless said otherwise:
//
//	every record   root | path | path length                           the group's shard id
//	entries        count | first index | { term | type | time | data length | data | extension length | extension }
//	stable         count | { key length | key | value length | value }
//	delete         from | to                                           both included
//	checkpoint     stable, then entries
//
// time is the leader's clock in nanoseconds since 1970, 0 when there is none.
type record struct {
	kind     recordKind
	group    base.ShardID
	entries  []raft.Log // contiguous
	stable   []keyValue
	from, to uint64
}

type keyValue struct {
	key   string
	value []byte
}

func (r *record) encode() []byte {
	size := 64
	for i := range r.entries {
		size += 40 + len(r.entries[i].Data) + len(r.entries[i].Extensions)
	}
	b := make([]byte, 0, size)
	b = binary.AppendUvarint(b, uint64(r.group.Root))
	b = binary.AppendUvarint(b, uint64(r.group.Path))
	b = binary.AppendUvarint(b, uint64(r.group.PathLen))
	switch r.kind {
	case recordEntries:
		b = r.appendEntries(b)
	case recordStable:
		b = r.appendStable(b)
	case recordDelete:
		b = binary.AppendUvarint(b, r.from)
		b = binary.AppendUvarint(b, r.to)
	case recordCheckpoint:
		b = r.appendEntries(r.appendStable(b))
	}
	return b
}

func (r *record) appendEntries(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.entries)))
	if len(r.entries) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, r.entries[0].Index)
	for i := range r.entries {
		l := &r.entries[i]
		b = binary.AppendUvarint(b, l.Term)
		b = binary.AppendUvarint(b, uint64(l.Type))
		nanos := uint64(0)
		if !l.AppendedAt.IsZero() {
			nanos = uint64(l.AppendedAt.UnixNano())
		}
		b = binary.AppendUvarint(b, nanos)
		b = appendBytes(b, l.Data)
		b = appendBytes(b, l.Extensions)
	}
	return b
}

func (r *record) appendStable(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.stable)))
	for _, kv := range r.stable {
		b = appendBytes(b, []byte(kv.key))
		b = appendBytes(b, kv.value)
	}
	return b
}

func appendBytes(b, p []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

// decodeRecord reads what encode wrote. It copies what it keeps: the payload belongs to the wal.
func decodeRecord(kind recordKind, payload []byte) (record, error) {
	d := recordReader{b: payload}
	r := record{kind: kind}
	r.group = base.ShardID{Root: uint16(d.below(1 << 16)), Path: uint16(d.below(1 << 16)), PathLen: uint8(d.below(17))}
	switch kind {
	case recordEntries:
		r.entries = d.entries()
	case recordStable:
		r.stable = d.stable()
	case recordDelete:
		r.from, r.to = d.uvarint(), d.uvarint()
	case recordCheckpoint:
		r.stable = d.stable()
		r.entries = d.entries()
	default:
		return r, fmt.Errorf("record kind %d is of a newer version", kind)
	}
	if d.bad || len(d.b) > 0 {
		return r, fmt.Errorf("a record of kind %d does not parse", kind)
	}
	return r, nil
}

// recordReader reads varints and byte strings; after the first that does not fit, everything is empty.
type recordReader struct {
	b   []byte
	bad bool
}

func (d *recordReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// below reads a number that must be less than limit.
func (d *recordReader) below(limit uint64) uint64 {
	v := d.uvarint()
	if v >= limit {
		d.bad, d.b = true, nil
		return 0
	}
	return v
}

func (d *recordReader) bytes() []byte {
	n := d.below(uint64(len(d.b)) + 1)
	if d.bad || n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	var p []byte
	if n > 0 {
		p = append(p, d.b[:n]...)
	}
	d.b = d.b[n:]
	return p
}

func (d *recordReader) entries() []raft.Log {
	n := d.below(uint64(len(d.b)) + 1) // each takes several bytes, so more cannot be meant
	if n == 0 {
		return nil
	}
	index := d.uvarint()
	logs := make([]raft.Log, 0, min(n, 1024))
	for range n {
		l := raft.Log{Index: index, Term: d.uvarint(), Type: raft.LogType(d.below(256))}
		if nanos := d.uvarint(); nanos != 0 {
			l.AppendedAt = time.Unix(0, int64(nanos)).UTC()
		}
		l.Data, l.Extensions = d.bytes(), d.bytes()
		if d.bad {
			return nil
		}
		logs = append(logs, l)
		index++
	}
	return logs
}

func (d *recordReader) stable() []keyValue {
	var list []keyValue
	for range d.below(uint64(len(d.b)) + 1) {
		kv := keyValue{key: string(d.bytes()), value: d.bytes()}
		if d.bad {
			return nil
		}
		list = append(list, kv)
	}
	return list
}
