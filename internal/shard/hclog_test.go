package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestRaftsLinesHaveTheirLevel(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	away := base.Errorf(base.CodeUnreachable, "ask replica", "it is gone")
	l.Error("failed to make requestVote RPC", "error", away)
	l.Warn("failed to contact", "server-id", "x")
	l.Info("entering follower state")
	l.Error("failed to heartbeat to", "error", fmt.Errorf("send heartbeat: %w", context.Canceled))
	l.Error("failed to appendEntries to", "error", base.Errorf(base.CodePreconditionFailed, "ask replica", "server is not here any more"))
	require.Empty(t, out.String())
	l.Error("failed to commit logs", "error", errors.New("disk"))
	l.Warn("heartbeat timeout reached, starting election")
	require.Contains(t, out.String(), "level=ERROR msg=\"failed to commit logs\" component=raft error=disk")
	require.Contains(t, out.String(), "level=WARN msg=\"heartbeat timeout")
}
