package main

import (
	"crypto/rand"
	"log/slog"
	"net"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/server"
)

// newBroker makes the real broker, on the machine's own disk, network and randomness.
func newBroker(cfg config.Config, log *slog.Logger) (broker, error) {
	return server.New(cfg, server.Deps{FS: vfs.OS, Logger: log, Listen: net.Listen, Rand: rand.Reader, Version: release})
}
