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
func newBroker(cfg config.Config, settings config.Sources, log *slog.Logger) (broker, error) {
	key, err := clusterKey(cfg.ClusterKeyFile)
	if err != nil {
		return nil, err
	}
	return server.New(cfg, server.Deps{
		FS: vfs.OS, Logger: log, Listen: net.Listen, ClusterKey: key, Settings: settings, Rand: rand.Reader, Version: release,
	})
}
