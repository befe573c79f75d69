package component

// Rect is a part of the canvas, in cells.
type Rect struct{ X, Y, W, H int }

// Empty reports whether nothing fits.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Right is the first column behind the rect.
func (r Rect) Right() int { return r.X + r.W }

// Bottom is the first row below the rect.
func (r Rect) Bottom() int { return r.Y + r.H }

// Contains reports whether a cell lies in the rect.
func (r Rect) Contains(x, y int) bool {
	return x >= r.X && x < r.Right() && y >= r.Y && y < r.Bottom()
}

// Intersect is what both rects cover.
func (r Rect) Intersect(o Rect) Rect {
	x, y := max(r.X, o.X), max(r.Y, o.Y)
	return Rect{x, y, max(min(r.Right(), o.Right())-x, 0), max(min(r.Bottom(), o.Bottom())-y, 0)}
}

// Inset leaves out a margin on all sides.
func (r Rect) Inset(dx, dy int) Rect {
	return Rect{r.X + dx, r.Y + dy, max(r.W-2*dx, 0), max(r.H-2*dy, 0)}
}

// Line is one row of the rect, counted from its top; it is empty outside.
func (r Rect) Line(i int) Rect {
	if i < 0 || i >= r.H || r.W < 0 {
		return Rect{r.X, r.Y + i, 0, 0}
	}
	return Rect{r.X, r.Y + i, r.W, 1}
}

// CutTop splits off the upper n rows.
func (r Rect) CutTop(n int) (top, rest Rect) {
	n = min(max(n, 0), max(r.H, 0))
	return Rect{r.X, r.Y, r.W, n}, Rect{r.X, r.Y + n, r.W, r.H - n}
}

// CutBottom splits off the lower n rows.
func (r Rect) CutBottom(n int) (rest, bottom Rect) {
	n = min(max(n, 0), max(r.H, 0))
	return Rect{r.X, r.Y, r.W, r.H - n}, Rect{r.X, r.Bottom() - n, r.W, n}
}

// CutLeft splits off the left n columns.
func (r Rect) CutLeft(n int) (left, rest Rect) {
	n = min(max(n, 0), max(r.W, 0))
	return Rect{r.X, r.Y, n, r.H}, Rect{r.X + n, r.Y, r.W - n, r.H}
}

// CutRight splits off the right n columns.
func (r Rect) CutRight(n int) (rest, right Rect) {
	n = min(max(n, 0), max(r.W, 0))
	return Rect{r.X, r.Y, r.W - n, r.H}, Rect{r.Right() - n, r.Y, n, r.H}
}

// Center is a rect of at most w by h in the middle.
func (r Rect) Center(w, h int) Rect {
	w, h = min(w, r.W), min(h, r.H)
	return Rect{r.X + (r.W-w)/2, r.Y + (r.H-h)/2, max(w, 0), max(h, 0)}
}
