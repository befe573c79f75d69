package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/telemetry"
)

// What one admin port may cost.
const (
	adminConns    = 64               // open at once, more wait in the kernel's queue
	adminSilent   = 32               // of them without a request; of more, some are closed
	adminHeaders  = 8 << 10          // bytes of a request's header
	adminRead     = 5 * time.Second  // to send a request
	adminWrite    = 10 * time.Second // to take an answer
	adminIdle     = time.Minute      // between two requests
	adminDrain    = 2 * time.Second  // Close waits for answers under way
	scrapesAtOnce = 4                // each takes a millisecond; more at once are a mistake
	profileAtMost = 2 * time.Minute  // seconds=… of a profile or trace
)

// openAdmin serves the admin port. It comes early, so that probes and scrapes get an answer while the log is replayed.
func (s *Server) openAdmin(context.Context) error {
	if s.ports.admin == nil {
		return nil
	}
	site := newAdminSite(s.registry, s.readiness, s.deps.Logger)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := site.serve(s.ports.admin); err != nil {
			s.deps.Logger.Error("admin port failed", "error", err)
		}
	})
	s.undo.Push("admin requests", func() error {
		defer serving.Wait()
		return site.close()
	})
	return nil
}

// adminSite is what operators' machines ask over HTTP: scrapers, probes, and people with a profiler. It knows nothing of
// a broker but its registry and whether it is ready.
type adminSite struct {
	registry  *telemetry.Registry
	readiness func() []string // what is missing; empty = ready
	scrapes   chan struct{}   // one token a scrape under way
	http      *http.Server
}

func newAdminSite(r *telemetry.Registry, readiness func() []string, logger *slog.Logger) *adminSite {
	a := &adminSite{registry: r, readiness: readiness, scrapes: make(chan struct{}, scrapesAtOnce)}
	a.http = &http.Server{
		Handler:           a.limit(a.routes()),
		ReadHeaderTimeout: adminRead, ReadTimeout: adminRead, IdleTimeout: adminIdle, // writes: see limit
		MaxHeaderBytes: adminHeaders,
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // what clients did wrong
	}
	return a
}

func (a *adminSite) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", a.index)
	mux.HandleFunc("/metrics", a.metrics)
	mux.HandleFunc("/healthz", a.healthz)
	mux.HandleFunc("/readyz", a.readyz)
	mux.Handle("/debug/pprof/", localOnly(profile(pprof.Index))) // and every named profile
	mux.Handle("/debug/pprof/cmdline", localOnly(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("/debug/pprof/symbol", localOnly(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("/debug/pprof/profile", localOnly(profile(pprof.Profile)))
	mux.Handle("/debug/pprof/trace", localOnly(profile(pprof.Trace)))
	return mux
}

func (a *adminSite) serve(l net.Listener) error {
	err := a.http.Serve(limitConns(lobby.New(adminSilent, nil).Guard(l), adminConns))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// close lets answers under way end, for a moment: a profile that runs for a minute is cut short.
func (a *adminSite) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminDrain)
	defer cancel()
	if err := a.http.Shutdown(ctx); err != nil {
		return a.http.Close()
	}
	return nil
}

// limit holds every request to reading, and to the time an answer may take. The time is set by request and not for the
// whole server, because a profile needs longer than the rest.
func (a *adminSite) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
			return
		}
		writeWithin(w, adminWrite)
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		next.ServeHTTP(w, r)
	})
}

// writeWithin bounds how long the answer may take. Only a recorder in a test has no deadline.
func writeWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

func (a *adminSite) index(w http.ResponseWriter, _ *http.Request) {
	text(w, http.StatusOK, "/metrics       what this node counts, for Prometheus\n"+
		"/healthz       200 while the process lives\n"+
		"/readyz        200 when the node serves, else 503 and why not\n"+
		"/debug/pprof/  profiles, from this machine only\n")
}

// metrics prints into memory first: a scraper that reads slowly holds a few pages, not a place among the scrapes.
func (a *adminSite) metrics(w http.ResponseWriter, r *http.Request) {
	select {
	case a.scrapes <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("%d scrapes are under way already", scrapesAtOnce), http.StatusServiceUnavailable)
		return
	}
	var page bytes.Buffer
	err := a.registry.WriteText(&page)
	<-a.scrapes
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", telemetry.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = page.WriteTo(w) // who left does not miss it
}

func (a *adminSite) healthz(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

func (a *adminSite) readyz(w http.ResponseWriter, _ *http.Request) {
	if missing := a.readiness(); len(missing) > 0 {
		text(w, http.StatusServiceUnavailable, "not ready: "+strings.Join(missing, "; ")+"\n")
		return
	}
	text(w, http.StatusOK, "ready\n")
}

func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// localOnly keeps profiles, which show memory, on this machine whatever the port is bound to. A proxy on this machine is
// not the machine, and neither is a web page whose name was made to resolve to it.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := notLocal(r); why != "" {
			http.Error(w, "profiles are for this machine only, and "+why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// notLocal says what makes a request come from elsewhere; empty when nothing does.
func notLocal(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return "this request comes from " + r.RemoteAddr
	}
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header.Get(h) != "" {
			return "this request came through a proxy"
		}
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && host != "localhost" {
		return "this request was made to " + host
	}
	return ""
}

// profile gives a handler that records for a while the time to do so.
func profile(record http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secs, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
		if err == nil && secs > profileAtMost.Seconds() {
			http.Error(w, fmt.Sprintf("seconds is at most %v", profileAtMost.Seconds()), http.StatusBadRequest)
			return
		}
		writeWithin(w, profileAtMost+adminWrite)
		record(w, r)
	})
}
