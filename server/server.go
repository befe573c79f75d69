package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Deps are what a broker takes from its surroundings. Zero fields get the real ones.
type Deps struct {
	FS      vfs.FS
	Logger  *slog.Logger
	Listen  func(network, addr string) (net.Listener, error)
	Rand    io.Reader
	Version string // of the binary, told to clients
}

func (d *Deps) ensureDefaults() {
	if d.FS == nil {
		d.FS = vfs.OS
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Listen == nil {
		d.Listen = net.Listen
	}
	if d.Rand == nil {
		d.Rand = rand.Reader
	}
	if d.Version == "" {
		d.Version = "dev"
	}
}

// Server is one broker.
type Server struct {
	cfg  config.Config
	deps Deps

	undo      task.Closer // what Start has done so far
	started   time.Time
	fatal     chan error
	fatalOnce sync.Once
	listener  net.Listener
}

// New makes a broker of a configuration. It touches no file and starts nothing.
func New(cfg config.Config, deps Deps) (*Server, error) {
	deps.ensureDefaults()
	return &Server{cfg: cfg, deps: deps, fatal: make(chan error, 1)}, nil
}

// Start brings the broker up and returns when it takes requests, or with the first error, everything undone.
func (s *Server) Start(ctx context.Context) error { return nil }

// Addr is the address of the client listener, once started.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Fatal delivers the error after which nothing may be acked any more: the process must exit with code 74.
func (s *Server) Fatal() <-chan error { return s.fatal }

// Close stops the broker: requests that were taken are finished, then everything is closed in the reverse order of
// the start. It may be called twice, and returns when nothing of the broker runs any more.
func (s *Server) Close() error { return s.undo.Close() }
