// Package telemetry is what a process knows about itself: counters, latency histograms and an event journal.
//
// A [Registry] holds the named metrics of one broker or client; its parts ask it for theirs once, at start, and
// keep the pointer:
//
//	acks := reg.Counter("eastguard_produce_batches_total", "Batches acknowledged.")
//	lat := reg.Histogram("eastguard_ack_seconds", "From arrival to ack.")
//	…
//	acks.Inc()
//	lat.Observe(time.Since(start))
//
// Recording takes no lock and allocates nothing. Reading gives a [Snapshot], which can be merged with those of
// other nodes: operators see quantiles over a cluster, never averages of averages. [Registry.WriteText] is what a
// Prometheus scrapes. Labels tell a few things of one kind apart, known when the program is written; a registry takes
// [MaxSeries] metrics, so a label with a user's names in it fails the first test that meets it.
//
// A [Journal] keeps the last 10,000 events with a sequence number that only grows. A reader holds a cursor, not
// a queue: one that falls behind is told how many events it missed, and costs the writers nothing.
package telemetry
