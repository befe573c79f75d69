package main

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
)

// broker is what the process needs of a running server.
type broker interface {
	Start(ctx context.Context) error // returns when requests are served
	Addr() string                    // of the client port
	Close() error                    // graceful, and waits
	Fatal() <-chan error             // stable storage failed: nothing may be acknowledged any more
	Stopped() <-chan error           // this process may not go on as this node
	Retired() <-chan struct{}        // an operator has asked the node to leave the cluster
}

type brokerFactory func(cfg config.Config, settings config.Sources, log *slog.Logger) (broker, error)

// runBroker is the life of the process: configure, start, serve until told to stop, stop.
func (a *app) runBroker(flags *pflag.FlagSet) error {
	cfg, settings, err := config.LoadFlags(flags, a.env, a.readFile)
	if err != nil {
		return err
	}
	log := newLogger(cfg, a.stderr, a.colour)
	host, warning, err := cfg.Advertise(a.interfaces)
	if err != nil {
		return err
	}
	for _, w := range config.UnknownEnv(a.env) {
		log.Warn("environment variable is unknown", "reason", w)
	}
	if warning != "" {
		log.Warn("advertised address was chosen", "advertise_host", host, "reason", warning)
	}
	cfg.AdvertiseHost = host

	b, err := a.newBroker(cfg, settings, log)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return a.serve(b, log)
}

// serve starts b and ends it on the first signal. A failure of stable storage ends the process without a
// graceful stop: what a Close would still write might be acknowledged, and lost.
func (a *app) serve(b broker, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	started := make(chan error, 1)
	go func() { started <- b.Start(ctx) }()

	for {
		select {
		case err := <-started:
			if err != nil {
				// Stable storage that failed during the start has its own exit code.
				select {
				case fatal := <-b.Fatal():
					return storageFailed(fatal)
				default:
				}
				_ = b.Close()
				return &exitError{exitFailed, err}
			}
			started = nil // a nil channel is never ready again
			log.Info("ready", "version", version(), "client_address", b.Addr(), "pid", os.Getpid(), "took_ms", time.Since(began).Milliseconds())
		case err := <-b.Fatal():
			return storageFailed(err)
		case err := <-b.Stopped():
			// No graceful stop here either: it would say farewell in the name of the process that goes on.
			return &exitError{exitFailed, err}
		case <-b.Retired():
			log.Info("stopping", "reason", "told to leave the cluster")
			cancel()
			return a.stop(b, started, log)
		case sig := <-a.signals:
			log.Info("stopping", "signal", sig.String())
			cancel()
			return a.stop(b, started, log)
		}
	}
}

// stop closes the broker, after a start that is still under way has noticed its cancelled context; a second
// signal waits for neither.
func (a *app) stop(b broker, starting <-chan error, log *slog.Logger) error {
	began := time.Now()
	closed := make(chan error, 1)
	go func() {
		if starting != nil {
			<-starting
		}
		closed <- b.Close()
	}()
	select {
	case err := <-closed:
		if err != nil {
			return &exitError{exitFailed, err}
		}
		log.Info("stopped", "took_ms", time.Since(began).Milliseconds())
		return nil
	case err := <-b.Fatal():
		return storageFailed(err)
	case sig := <-a.signals:
		log.Warn("stopped at once by a second signal", "signal", sig.String())
		return &exitError{code: 128 + signalNumber(sig)}
	}
}

func storageFailed(err error) error {
	return &exitError{exitStorage, base.Wrap(base.CodeInternal, "stable storage failed", err).
		WithHint("check the disk and the kernel's log; what was acknowledged is on disk, and the next start recovers it")}
}

func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}
