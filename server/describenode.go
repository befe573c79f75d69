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

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/wire"
)

// describeNode tells everything that a node knows about itself: this one, or another by asking it.
func (s *Server) describeNode(ctx context.Context, req wire.DescribeNodeRequest) (wire.DescribeNodeResponse, error) {
	node := req.Node
	if node == "" {
		node = s.id.Node
	}
	var resp wire.DescribeNodeResponse
	if err := s.mustKnow("describe node", node); err != nil {
		return resp, err
	}
	n, known := s.view().Node(node)
	if known && gone(n) && node != s.id.Node {
		// Nothing is gained by asking until the deadline. What the others have heard of it, the list of nodes shows.
		return resp, base.Errorf(base.CodeUnreachable, "describe node", "node %s is %s and cannot be asked", node, n.Liveness).
			WithHint("what the others last heard of it: eg-cli node list -o wide")
	}
	err := s.ask(ctx, node, askDescribe, nil, &resp)
	if n, ok := s.view().Node(node); ok && err == nil {
		s.judge(&resp.Status, n)
	}
	return resp, err
}

// ownSettings lists the configuration as it is in force. None of it changes without a restart.
func (s *Server) ownSettings() []wire.Setting {
	table := make(map[string]config.Setting)
	for _, row := range config.Settings() {
		table[row.Key] = row
	}
	var list []wire.Setting
	for _, row := range s.deps.Settings {
		list = append(list, wire.Setting{
			Key: row.Key, Value: config.Format(row.Value), Default: config.Format(table[row.Key].Default), Source: row.Source,
			Reload: "restart", Help: table[row.Key].Help,
		})
	}
	return list
}

func (s *Server) describeSelf() wire.DescribeNodeResponse {
	st, own := s.store.Stats(), s.ownStatus()
	resp := wire.DescribeNodeResponse{
		Status: own, Cluster: s.id.Cluster, Disk: s.id.Disk, Meta: s.id.Meta,
		ClusterAddress: s.self.cluster, DataAddress: s.self.data, AdminAddress: s.self.admin,
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Pid: os.Getpid(),
		StartedMs: s.started.UnixMilli(), DataDir: s.cfg.DataDir, MetaDir: s.cfg.MetaDir,
		Settings: s.ownSettings(), Counters: s.counters(), RssBytes: residentBytes(),
		WalBytes: st.WAL.Bytes, WalFiles: st.WAL.Files, RingHash: own.RingHash, RingVersion: own.RingVersion,
	}
	return resp
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
