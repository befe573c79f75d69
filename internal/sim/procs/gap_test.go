package procs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// planted is a producer whose acks take a millisecond each, but for those of the plan.
type planted struct {
	before []answer // of the first records, which come before the blow
	after  []answer // of the first records behind the blow; the last one opens the next segment
	struck chan struct{}
	sent   int
	behind int
}

type answer struct {
	takes  time.Duration
	fails  bool
	rolled bool // it comes from the next segment, as all that follow do
}

func (p *planted) measure(ctx context.Context) (Gap, error) {
	p.struck = make(chan struct{})
	m := measured{send: func() (sdk.SegmentID, error) { return p.send(ctx) }, strike: func() error { close(p.struck); return nil }}
	return m.run(ctx)
}

func (p *planted) send(ctx context.Context) (sdk.SegmentID, error) {
	synctest.Wait() // the blow is struck, if it is under way
	a, segment := p.next()
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if a.fails {
		return 0, errors.New("no answer")
	}
	return segment, nil
}

func (p *planted) next() (answer, sdk.SegmentID) {
	p.sent++
	select {
	case <-p.struck:
	default:
		if p.sent <= len(p.before) {
			return p.before[p.sent-1], 1
		}
		return answer{takes: time.Millisecond}, 1
	}
	p.behind++
	if p.behind > len(p.after) {
		return answer{takes: time.Millisecond}, 2
	}
	a := p.after[p.behind-1]
	if a.rolled {
		return a, 2
	}
	return a, 1
}

func TestGapsThatWerePlantedAreFound(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		plan   planted
		took   time.Duration
		failed int
	}{
		"one":  {planted{after: []answer{{takes: 120 * ms, rolled: true}}}, 120 * ms, 0},
		"none": {planted{after: []answer{{takes: ms, rolled: true}}}, ms, 0},
		"one before the blow is not counted": {
			planted{before: []answer{{takes: time.Minute}, {takes: ms}}, after: []answer{{takes: 30 * ms, rolled: true}}}, 30 * ms, 0,
		},
		"the longer of two, which comes behind the roll": {
			planted{after: []answer{{takes: 40 * ms, rolled: true}, {takes: ms, rolled: true}, {takes: 90 * ms, rolled: true}}}, 90 * ms, 0,
		},
		"acks that the old segment still gives end it, and it begins anew": {
			planted{after: []answer{{takes: 25 * ms}, {takes: ms}, {takes: 60 * ms, rolled: true}}}, 60 * ms, 0,
		},
		"the longest is in the old segment": {planted{after: []answer{{takes: 700 * ms}, {takes: 60 * ms, rolled: true}}}, 700 * ms, 0},
		"records that fail do not end it":   {planted{after: []answer{{takes: 100 * ms, fails: true}, {takes: 50 * ms, fails: true}, {takes: 20 * ms, rolled: true}}}, 170 * ms, 2},
		"a failure before the blow":         {planted{before: []answer{{takes: ms, fails: true}}, after: []answer{{takes: 7 * ms, rolled: true}}}, 7 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := c.plan.measure(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.took, g.Took)
				require.Equal(t, c.failed, g.Failed)
				require.EqualValues(t, 1, g.Before)
				require.EqualValues(t, 2, g.After)
				require.Equal(t, g.Acked+g.Failed, c.plan.sent)
				require.GreaterOrEqual(t, g.Acked, 2*steadyAcks)
			})
		})
	}
}

// A producer that is never served again is no gap of any length.
func TestAGapWithoutAnEndIsAnError(t *testing.T) {
	for name, after := range map[string][]answer{
		"silence":                  {{takes: time.Hour}},
		"the old segment lives on": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				p := planted{after: after}
				if after == nil {
					for range 60_000 {
						p.after = append(p.after, answer{takes: time.Millisecond})
					}
				}
				_, err := p.measure(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "not been served again")
			})
		})
	}
}

// A blow that missed is no measurement.
func TestABlowThatFailsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := planted{struck: make(chan struct{})}
		missed := errors.New("no such process")
		m := measured{send: func() (sdk.SegmentID, error) { return p.send(t.Context()) }, strike: func() error { close(p.struck); return missed }}
		_, err := m.run(t.Context())
		require.ErrorIs(t, err, missed)
	})
}
