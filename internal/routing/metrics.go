package routing

import (
	"strconv"

	"github.com/eastguard/eastguard/internal/telemetry"
)

// result is what became of a request that was sent on to another node.
type result int

const (
	answered  result = iota
	refused          // an error to keep
	elsewhere        // this node could not; another one, or the same one later, may
	results
)

func (r result) String() string {
	switch r {
	case answered:
		return "answered"
	case refused:
		return "refused"
	case elsewhere:
		return "elsewhere"
	case results:
	}
	return "result_" + strconv.Itoa(int(r))
}

func resultOf(err error) result {
	switch {
	case err == nil:
		return answered
	case tryElsewhere(err):
		return elsewhere
	}
	return refused
}

// metrics count requests that change nodes: each where it was sent on, and again where it arrived.
type metrics struct {
	forwarded [results]*telemetry.Counter
	received  [MaxHops][results]*telemetry.Counter // by how many nodes they had left
	retried   *telemetry.Counter
}

func newMetrics(r *telemetry.Registry) metrics {
	var m metrics
	for res := range results {
		m.forwarded[res] = r.Counter("eastguard_forwarded_requests_total",
			"Metadata requests sent on to the node that leads their shard: answered, refused for good, or to be tried elsewhere.", "result", res.String())
		for hop := range m.received {
			m.received[hop][res] = r.Counter("eastguard_forwards_received_total",
				"Such requests that other nodes sent here, by how many times each had been sent on.", "result", res.String(), "hops", strconv.Itoa(hop+1))
		}
	}
	m.retried = r.Counter("eastguard_forward_retries_total", "Further tries of such requests, because the first node did not lead or did not answer.")
	return m
}
