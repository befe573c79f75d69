package server

import (
	"github.com/eastguard/eastguard/internal/wire"
)

// shardsHere lists the replicas on this node.
func (s *Server) shardsHere() []wire.ShardStatus {
	var list []wire.ShardStatus
	for _, st := range s.host.Status() {
		list = append(list, hostedStatus(st))
	}
	return list
}
