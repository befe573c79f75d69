package server

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// describeNode tells everything that this node knows about itself.
func (s *Server) describeNode(_ context.Context, req wire.DescribeNodeRequest) (wire.DescribeNodeResponse, error) {
	const op = "describe node"
	if req.Node != "" && req.Node != s.id.Node {
		n, ok := s.view().Node(req.Node)
		if !ok {
			return wire.DescribeNodeResponse{}, base.Errorf(base.CodeNodeNotFound, op, "node %s not found", req.Node)
		}
		return wire.DescribeNodeResponse{}, base.Errorf(base.CodeNotLeader, op, "node %s can describe itself", req.Node).
			WithRedirect(base.Redirect{Node: n.ID, Address: n.Address})
	}
	self, _ := s.view().Node(s.id.Node)
	st := s.store.Stats()
	return wire.DescribeNodeResponse{
		Status: s.nodeStatus(self, s.rates.now(time.Now())), Cluster: s.id.Cluster, Disk: s.id.Disk, Meta: s.id.Meta,
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Pid: os.Getpid(),
		StartedMs: s.started.UnixMilli(), DataDir: s.cfg.DataDir, MetaDir: s.cfg.MetaDir,
		Counters: s.counters(), RssBytes: residentBytes(),
		WalBytes: st.WAL.Bytes, WalFiles: st.WAL.Files,
	}, nil
}

// counters lists every counter and gauge of the node's registry.
func (s *Server) counters() map[string]int64 {
	m := make(map[string]int64)
	for _, metric := range s.registry.Metrics() {
		switch {
		case metric.Counter != nil:
			m[metric.ID()] = int64(metric.Counter.Value())
		case metric.CounterFunc != nil:
			m[metric.ID()] = int64(metric.CounterFunc())
		case metric.Gauge != nil:
			m[metric.ID()] = metric.Gauge.Value()
		case metric.GaugeFunc != nil:
			m[metric.ID()] = int64(metric.GaugeFunc())
		}
	}
	return m
}

// residentBytes is the process's memory as the kernel counts it; 0 where there is no /proc.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
