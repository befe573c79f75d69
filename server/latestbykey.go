package server

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
)

// latestByKey reads a slot of a keyed topic. Users' topics are not keyed, and this version makes no others.
func (s *Server) latestByKey(_ context.Context, r *mux.Request) {
	r.Fail(base.Errorf(base.CodeInvalidArgument, "latest by key", "the topic is not keyed: it keeps records, not the latest one of each key").
		WithHint("read the topic from earliest and keep the last record of each key"))
}
