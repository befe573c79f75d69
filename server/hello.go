package server

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// hello shakes hands: it says who this is and what it accepts.
func (s *Server) hello(req wire.HelloRequest) (wire.HelloResponse, error) {
	const op = "hello"
	if !req.Cluster.IsZero() && req.Cluster != s.id.Cluster {
		return wire.HelloResponse{}, base.Errorf(base.CodeDenied, op, "this node belongs to cluster %s, not %s", s.id.Cluster, req.Cluster).
			WithHint("check the seeds: they lead to another cluster")
	}
	return wire.HelloResponse{
		Cluster: s.id.Cluster, Node: s.id.Node, Boot: s.id.Boot, Version: s.deps.Version,
		ProtocolVersion: min(wire.Version, req.MaxVersion),
		MaxRecordBytes:  s.cfg.MaxRecordBytes, MaxBatchBytes: s.maxBatchBytes(),
		MaxInFlight: maxInFlight, MaxInFlightBytes: maxInFlightBytes,
		Address: s.advertised, TimeMs: time.Now().UnixMilli(), Rack: s.cfg.Rack,
	}, nil
}
