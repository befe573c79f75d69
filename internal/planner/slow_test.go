package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func ids(list ...base.NodeID) []base.NodeID { return list }

func TestSlowByTheWordOfHalf(t *testing.T) {
	type report struct {
		from      base.NodeID
		late      []base.NodeID
		followers []base.NodeID
	}
	for name, c := range map[string]struct {
		reports []report
		slow    bool
	}{
		"nobody says so":                         {[]report{{"n1", nil, ids("n9")}}, false},
		"a lone leader's word":                   {[]report{{"n1", ids("n9"), ids("n9")}}, true},
		"one of two is not enough":               {[]report{{"n2", nil, ids("n9")}, {"n1", ids("n9"), ids("n9")}}, false},
		"both of two":                            {[]report{{"n2", ids("n9"), ids("n9")}, {"n1", ids("n9"), ids("n9")}}, true},
		"two of three":                           {[]report{{"n1", ids("n9"), ids("n9")}, {"n2", ids("n9"), ids("n9")}, {"n3", nil, ids("n9")}}, true},
		"the third came first":                   {[]report{{"n3", nil, ids("n9")}, {"n1", ids("n9"), ids("n9")}, {"n2", ids("n9"), ids("n9")}}, true},
		"one of three":                           {[]report{{"n3", nil, ids("n9")}, {"n2", nil, ids("n9")}, {"n1", ids("n9"), ids("n9")}}, false},
		"two of four":                            {[]report{{"n3", nil, ids("n9")}, {"n4", nil, ids("n9")}, {"n1", ids("n9"), ids("n9")}, {"n2", ids("n9"), ids("n9")}}, true},
		"leaders without segments on it":         {[]report{{"n3", nil, ids("n8")}, {"n2", ids("n8"), ids("n8")}, {"n1", ids("n9"), ids("n9")}}, true},
		"it names itself, the others do not":     {[]report{{"n1", nil, ids("n9")}, {"n9", ids("n9"), ids("n1")}}, false},
		"it names itself, as the others do":      {[]report{{"n1", ids("n9"), ids("n9")}, {"n9", ids("n9"), ids("n1")}}, true},
		"who takes its word back":                {[]report{{"n2", nil, ids("n9")}, {"n2", nil, nil}, {"n1", ids("n9"), ids("n9")}}, true},
		"a word without segments is a word":      {[]report{{"n1", ids("n9"), nil}}, true},
		"said while another one was not there":   {[]report{{"n1", ids("n9"), ids("n9")}, {"n2", nil, ids("n9")}}, true},
		"silence of a leader that leads nothing": {[]report{{"n2", nil, nil}, {"n1", ids("n9"), ids("n9")}}, true},
	} {
		var s Slowness
		for _, r := range c.reports {
			s.Report(r.from, r.late, r.followers, 1000)
		}
		require.Equal(t, c.slow, s.Slow("n9", 1000), name)
	}
}

func TestSlowForLongerEachTime(t *testing.T) {
	var s Slowness
	now := int64(0)
	name := func() { s.Report("n1", ids("n9"), ids("n9"), now) }
	for _, length := range []int64{60_000, 120_000, 240_000, 480_000, 600_000, 600_000} {
		name()
		name() // said again: nothing new
		require.True(t, s.Slow("n9", now))
		require.True(t, s.Slow("n9", now+length-1))
		require.False(t, s.Slow("n9", now+length))
		now += length
	}
	// It behaved for long enough: the next time is a first one.
	now += 600_001
	name()
	require.False(t, s.Slow("n9", now+60_000))
	require.False(t, s.Slow("n1", now), "of nobody else")
}

func TestAReportDoesNotCountForEver(t *testing.T) {
	var s Slowness
	s.Report("n2", nil, ids("n9"), 0)
	s.Report("n1", ids("n9"), ids("n9"), 60_000)
	require.False(t, s.Slow("n9", 60_000))
	s.Report("n1", ids("n9"), ids("n9"), 60_001) // n2 has not been heard for a minute
	require.True(t, s.Slow("n9", 60_001))
}
