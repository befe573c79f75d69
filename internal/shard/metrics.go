package shard

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/telemetry"
)

// metrics are what the shards count.
type metrics struct {
	applied, refused, unknown *telemetry.Counter
	fsync, took               *telemetry.Histogram
}

func newMetrics(r *telemetry.Registry) metrics {
	if r == nil {
		r = telemetry.NewRegistry()
	}
	proposals := func(result string) *telemetry.Counter {
		return r.Counter("eastguard_shard_proposals_total",
			"Commands proposed to shards led here: committed, refused before they entered the log, or with an outcome that is not known.", "result", result)
	}
	return metrics{
		applied: proposals("committed"),
		refused: proposals("refused"),
		unknown: proposals("unknown"),
		fsync:   r.Histogram("eastguard_shard_fsync_seconds", "One fdatasync of the log that all replicas here share."),
		took:    r.Histogram("eastguard_shard_propose_seconds", "From the proposal of a command to its being applied here."),
	}
}

// proposed counts one proposal.
func (m *metrics) proposed(took time.Duration, err error) {
	switch {
	case err == nil:
		m.applied.Inc()
		m.took.Observe(took)
	case base.OutcomeOf(err) == base.Unknown:
		m.unknown.Inc()
	default:
		m.refused.Inc()
	}
}
