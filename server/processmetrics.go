package server

import (
	"runtime"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/eastguard/eastguard/internal/telemetry"
)

// registerProcess counts what the process takes from its machine.
func registerProcess(r *telemetry.Registry, version string) {
	started := time.Now()
	r.GaugeFunc("eastguard_build_info", "Always 1; the labels say which binary runs.", func() float64 { return 1 },
		"version", version, "go", runtime.Version())
	r.GaugeFunc("eastguard_uptime_seconds", "Since the process began.", func() float64 { return time.Since(started).Seconds() })
	r.GaugeFunc("eastguard_resident_bytes", "Memory of the process as the kernel counts it.", func() float64 { return float64(residentBytes()) })
	r.GaugeFunc("eastguard_heap_bytes", "Memory of live and not yet collected objects.", heapBytes)
	r.GaugeFunc("eastguard_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	r.CounterFunc("eastguard_cpu_seconds_total", "Processor time of the process, in user and kernel mode.", func() float64 { return cpuTime().Seconds() })
}

// heapBytes reads one figure without stopping the world.
func heapBytes() float64 {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(sample)
	if sample[0].Value.Kind() != runtimemetrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64())
}
