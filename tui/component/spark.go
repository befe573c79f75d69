package component

import (
	"math"

	"github.com/eastguard/eastguard/tui/styles"
)

// Spark draws the last values as a line of blocks that ends at the right edge, the newest there. Most is the value
// of a full block, 0 for the greatest shown. NaN is a moment without data, which is marked as one: it is no zero.
func (c *Canvas) Spark(r Rect, values []float64, most float64, style styles.Style) {
	if r.Empty() {
		return
	}
	values = values[max(len(values)-r.W, 0):]
	if most <= 0 {
		most = greatest(values)
	}
	x := r.Right() - len(values)
	for i, v := range values {
		if math.IsNaN(v) {
			c.Put(x+i, r.Y, c.theme.Glyphs.Quiet, styles.Dim)
			continue
		}
		level, _ := styles.Level(v, most)
		c.Put(x+i, r.Y, c.theme.Glyphs.Ramp[level+1], style) // zero has the lowest one: a quiet line is a line
	}
}

func greatest(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		if v > most && !math.IsInf(v, 1) { // NaN is never greater
			most = v
		}
	}
	return most
}

// Trend is the sign for a series that rises, falls or stays: the mean of its last third against the one of its
// first, a tenth apart at least.
func (c *Canvas) Trend(values []float64) rune {
	third := len(values) / 3
	if third == 0 {
		return c.theme.Glyphs.Flat
	}
	early, late := mean(values[:third]), mean(values[len(values)-third:])
	switch {
	case late > early*1.1 && late > 0:
		return c.theme.Glyphs.Up
	case late < early*0.9:
		return c.theme.Glyphs.Down
	}
	return c.theme.Glyphs.Flat
}

func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// Bar draws a share of the rect's width, in eighths of a cell.
func (c *Canvas) Bar(r Rect, share float64, style styles.Style) {
	if r.Empty() {
		return
	}
	g, eighths := c.Glyphs(), part(share, r.W*8)
	for x := range r.W {
		switch left := eighths - x*8; {
		case left >= 8:
			c.Put(r.X+x, r.Y, g.Eighths[7], style)
		case left > 0:
			c.Put(r.X+x, r.Y, g.Eighths[left-1], style)
		}
	}
}

// Meter draws a framed bar with its share as a number behind it, ▕▇▇▇▁▏ 62%, in the rect's width.
func (c *Canvas) Meter(r Rect, share float64, style styles.Style) {
	const number = 4
	if r.W < number || r.H < 1 {
		return
	}
	if bar := r.W - number - 2; bar > 0 {
		g := c.Glyphs()
		full := part(share, bar)
		c.Put(r.X, r.Y, g.BarLeft, styles.Dim)
		for x := range bar {
			if x < full {
				c.Put(r.X+1+x, r.Y, g.Ramp[7], style)
			} else {
				c.Put(r.X+1+x, r.Y, g.BarEmpty, styles.Dim)
			}
		}
		c.Put(r.X+1+bar, r.Y, g.BarRight, styles.Dim)
	}
	c.Number(r.Right()-number, r.Y, number, Percent(share), style)
}

// part is a share of n, rounded; what is not between 0 and 1 is clamped, NaN is nothing.
func part(share float64, n int) int {
	if !(share > 0) {
		return 0
	}
	return int(math.Round(min(share, 1) * float64(n)))
}
