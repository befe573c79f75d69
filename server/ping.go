package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// ping answers on the reader's goroutine: it measures the request path and nothing behind it.
func (s *Server) ping(_ context.Context, r *mux.Request) {
	r.Reply(wire.Encode(wire.PingResponse{Node: s.id.Node, TimeMs: time.Now().UnixMilli(), Boot: s.id.Boot}))
}
