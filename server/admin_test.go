package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/vfs"
)

// site is an admin site without a broker.
func site(missing *[]string) *adminSite {
	r := telemetry.NewRegistry()
	r.Counter("eastguard_requests_total", "Requests of clients, by kind.", "kind", "produce").Add(3)
	return newAdminSite(r, func() []string { return *missing }, slog.New(slog.DiscardHandler))
}

func ask(a *adminSite, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:2924/", http.NoBody)
	r.RemoteAddr = "127.0.0.1:5000"
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	a.http.Handler.ServeHTTP(w, r)
	return w
}

func at(p string) func(*http.Request) {
	return func(r *http.Request) { r.URL.Path, r.URL.RawQuery, _ = strings.Cut(p, "?") }
}

func from(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }

func through(header string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, "203.0.113.9") }
}

func TestAdminMetrics(t *testing.T) {
	w := ask(site(new([]string)), at("/metrics"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "# HELP eastguard_requests_total Requests of clients, by kind.\n"+
		"# TYPE eastguard_requests_total counter\neastguard_requests_total{kind=\"produce\"} 3\n", w.Body.String())

	head := ask(site(new([]string)), at("/metrics"), func(r *http.Request) { r.Method = http.MethodHead })
	require.Empty(t, head.Body.String())
	require.Equal(t, fmt.Sprint(w.Body.Len()), head.Header().Get("Content-Length"))
}

// More scrapes at once than anybody needs are turned away and not queued.
func TestAdminScrapesAreFew(t *testing.T) {
	a := site(new([]string))
	for range scrapesAtOnce {
		a.scrapes <- struct{}{}
	}
	w := ask(a, at("/metrics"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	<-a.scrapes
	require.Equal(t, http.StatusOK, ask(a, at("/metrics")).Code)
}

func TestAdminReadiness(t *testing.T) {
	missing := []string{"no leader in shard 3", "not admitted"}
	a := site(&missing)
	w := ask(a, at("/readyz"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "not ready: no leader in shard 3; not admitted\n", w.Body.String())
	require.Equal(t, http.StatusOK, ask(a, at("/healthz")).Code, "a process that waits is not a dead one")

	missing = nil
	w = ask(a, at("/readyz"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "ready\n", w.Body.String())
}

func TestAdminRefuses(t *testing.T) {
	a := site(new([]string))
	post := func(r *http.Request) { r.Method = http.MethodPost }
	require.Equal(t, http.StatusMethodNotAllowed, ask(a, at("/healthz"), post).Code)
	require.Equal(t, http.StatusMethodNotAllowed, ask(a, at("/debug/pprof/symbol"), post).Code)
	require.Equal(t, http.StatusNotFound, ask(a, at("/etc/passwd")).Code)
	require.Equal(t, http.StatusNotFound, ask(a, at("/metrics/")).Code)
	require.Equal(t, http.StatusOK, ask(a).Code, "/ says what there is")
	require.Equal(t, http.StatusBadRequest, ask(a, at("/debug/pprof/profile?seconds=3600")).Code)
}

func TestAdminProfilesStayHere(t *testing.T) {
	a := site(new([]string))
	to := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for _, page := range []string{"", "heap", "goroutine", "cmdline", "profile", "trace", "symbol"} {
		for name, how := range map[string]func(*http.Request){
			"from another machine":     from("10.0.0.7:4000"),
			"from another, over IPv6":  from("[2001:db8::1]:4000"),
			"from nowhere":             from("pipe"),
			"through a proxy":          through("X-Forwarded-For"),
			"through another":          through("Forwarded"),
			"through a third":          through("Via"),
			"by a page in the browser": to("evil.example:2924"),
		} {
			w := ask(a, at("/debug/pprof/"+page), how)
			require.Equal(t, http.StatusForbidden, w.Code, "%s %s", page, name)
			require.NotContains(t, w.Body.String(), "goroutine", "%s %s", page, name)
		}
	}
	for _, peer := range []string{"127.0.0.1:4000", "[::1]:4000", "127.8.8.8:1", "[::ffff:127.0.0.1]:4000"} {
		require.Equal(t, http.StatusOK, ask(a, at("/debug/pprof/cmdline"), from(peer)).Code, peer)
	}
	for _, host := range []string{"localhost:2924", "localhost", "[::1]:2924", "127.0.0.1", "10.0.0.7:2924"} {
		require.Equal(t, http.StatusOK, ask(a, at("/debug/pprof/goroutine?debug=1"), to(host)).Code, host)
	}
}

// serveSite runs a site on a port in memory, in virtual time.
func serveSite(t *testing.T, a *adminSite) (dial func() net.Conn, stop func()) {
	t.Helper()
	network := peer.NewNetwork()
	l, err := network.Listen("n1:2924")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- a.serve(l) }()
	dial = func() net.Conn {
		c, err := network.Dialer("client")(context.Background(), "n1:2924")
		require.NoError(t, err)
		return c
	}
	return dial, func() {
		require.NoError(t, a.close())
		require.NoError(t, <-done)
	}
}

// A client that says nothing, or never ends its header, is gone after its time.
func TestAdminSlowClientsAreDropped(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "half a header": "GET /healthz HTTP/1.1\r\nHost: n1\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			dial, stop := serveSite(t, site(new([]string)))
			defer stop()
			c := dial()
			defer c.Close()
			_, err := io.WriteString(c, says)
			require.NoError(t, err)
			start := time.Now()
			_, _ = io.ReadAll(c)
			require.LessOrEqual(t, time.Since(start), adminRead+time.Second, name)
		})
	}
}

func TestAdminLargeHeaderIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, stop := serveSite(t, site(new([]string)))
		defer stop()
		c := dial()
		defer c.Close()
		_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: n1\r\nCookie: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	})
}

// Connections above the limit wait until one of the others ends, and closing the site does not wait for them.
func TestAdminConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, stop := serveSite(t, site(new([]string)))
		var first []net.Conn
		for range adminConns {
			c := dial()
			_, err := io.WriteString(c, "G")
			require.NoError(t, err)
			first = append(first, c)
		}
		late := dial()
		defer late.Close()
		var answered atomic.Bool
		go func() {
			_, _ = io.WriteString(late, "GET /healthz HTTP/1.0\r\n\r\n")
			b, _ := io.ReadAll(late)
			answered.Store(strings.Contains(string(b), "200 OK"))
		}()
		synctest.Wait()
		require.False(t, answered.Load())
		require.NoError(t, first[0].Close())
		synctest.Wait()
		require.True(t, answered.Load())
		for _, c := range first {
			defer c.Close()
		}
		waiting := dial()
		defer waiting.Close()
		stop()
	})
}

// get asks a running broker over HTTP.
func get(t *testing.T, n *node, page string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + n.ports.admin.Addr().String() + page)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

// withAdmin gives the broker an admin port that is free: 0 would switch it off.
func withAdmin(t *testing.T) func(*config.Config) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return func(c *config.Config) { c.AdminPort = l.Addr().(*net.TCPAddr).Port }
}

func TestBrokerServesItsAdminPort(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	n := start(t, vfs.NewMem(), withAdmin(t))
	code, body := get(t, n, "/readyz")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, "ready\n", body)

	_, body = get(t, n, "/metrics")
	for _, want := range []string{
		`eastguard_build_info{go="go`, `eastguard_requests_total{kind="produce"} 0`, "eastguard_fsync_seconds_count ", "eastguard_shard_fsync_seconds_count ", "eastguard_goroutines ",
	} {
		require.Contains(t, body, want)
	}
	code, _ = get(t, n, "/debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, code)

	n.closing.Store(true)
	code, body = get(t, n, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "not ready: the broker is stopping\n", body)
}

// The port answers while the broker starts, and after a start that failed nothing is left of it.
func TestAdminPortComesFirst(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	cfg := testConfig()
	withAdmin(t)(&cfg)
	n := &node{t: t}
	boom := errors.New("boom")
	var asked sync.Once
	fs := vfs.NewFault(vfs.NewMem(), vfs.Rule{Ops: vfs.OpMkdir, Err: boom, Before: func(vfs.Call) {
		asked.Do(func() {
			code, body := get(t, n, "/readyz")
			require.Equal(t, http.StatusServiceUnavailable, code)
			require.Contains(t, body, "not ready: starting: ")
			code, _ = get(t, n, "/healthz")
			require.Equal(t, http.StatusOK, code)
			code, _ = get(t, n, "/metrics")
			require.Equal(t, http.StatusOK, code)
		})
	}})
	var err error
	n.Server, err = New(cfg, Deps{FS: fs, Logger: testLogger(t)})
	require.NoError(t, err)
	require.ErrorIs(t, n.Start(t.Context()), boom)
	_, err = net.Dial("tcp", n.ports.admin.Addr().String())
	require.Error(t, err)
}
