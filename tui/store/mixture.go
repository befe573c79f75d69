package store

import (
	"cmp"
	"slices"

	"github.com/eastguard/eastguard/sdk"
)

// mixture adds up distributions of which only some quantiles are known. Each is taken at its worst: what lies between
// two quantiles counts as the upper one. So the sum never shows less than what was.
type mixture struct {
	mass []massAt
	all  float64
	max  int64
}

type massAt struct {
	us     int64
	weight float64
}

func (m *mixture) add(q sdk.Quantiles) {
	if q.Count == 0 {
		return
	}
	n := float64(q.Count)
	m.mass = append(m.mass,
		massAt{q.P50Us, 0.5 * n}, massAt{q.P90Us, 0.4 * n}, massAt{q.P99Us, 0.09 * n}, massAt{q.P999Us, 0.009 * n}, massAt{q.MaxUs, 0.001 * n})
	m.all += n
	m.max = max(m.max, q.MaxUs)
}

func (m *mixture) quantiles() sdk.Quantiles {
	if m.all == 0 {
		return sdk.Quantiles{}
	}
	slices.SortFunc(m.mass, func(a, b massAt) int { return cmp.Compare(a.us, b.us) })
	at := func(q float64) int64 {
		var seen float64
		for _, p := range m.mass {
			if seen += p.weight; seen >= q*m.all*(1-1e-9) {
				return p.us
			}
		}
		return m.max
	}
	return sdk.Quantiles{Count: uint64(m.all), P50Us: at(0.5), P90Us: at(0.9), P99Us: at(0.99), P999Us: at(0.999), MaxUs: m.max}
}
