package store

import "math"

// meter is how much came lately, a second, weighted by how long ago: by 1/e after meterSecs. It needs nobody to look at it
// at any interval, and forgets by itself.
type meter struct {
	bytes, records float64
	atMs           int64 // when that was so
}

const meterSecs = 5.0

// add counts what came at a time. Times before the last ones are theirs: clocks of leaders differ.
func (m *meter) add(bytes int, records, ms int64) {
	m.bytes, m.records = m.now(ms)
	m.bytes += float64(bytes) / meterSecs
	m.records += float64(records) / meterSecs
	m.atMs = max(m.atMs, ms)
}

// now is how much comes at a time.
func (m *meter) now(ms int64) (bytes, records float64) {
	passed := float64(ms-m.atMs) / 1000
	if passed <= 0 || m.bytes == 0 {
		return m.bytes, m.records
	}
	left := math.Exp(-passed / meterSecs)
	return m.bytes * left, m.records * left
}
