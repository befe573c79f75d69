package component

// rowCache keeps the cells of table rows, so that a row that did not change is copied instead of drawn.
type rowCache struct {
	rows  map[rowKey]*cachedRow
	frame uint64
}

// rowKey says all that the cells of a row depend on, but the row's place.
type rowKey struct {
	table   string // its name
	id      string
	version uint64
	layout  uint64 // columns and their widths
	theme   uint32
}

type cachedRow struct {
	cells []cell
	frame uint64 // last used
}

// maxRows bounds the cache: a few screens of rows.
const maxRows = 2048

// nextFrame forgets rows that have not been on the screen for a while.
func (r *rowCache) nextFrame() {
	r.frame++
	if len(r.rows) <= maxRows {
		return
	}
	for key, row := range r.rows {
		if row.frame+1 < r.frame {
			delete(r.rows, key)
		}
	}
}

func (r *rowCache) find(key rowKey) []cell {
	row := r.rows[key]
	if row == nil {
		return nil
	}
	row.frame = r.frame
	return row.cells
}

func (r *rowCache) keep(key rowKey, cells []cell) {
	if r.rows == nil {
		r.rows = make(map[rowKey]*cachedRow)
	}
	r.rows[key] = &cachedRow{append([]cell(nil), cells...), r.frame}
}
