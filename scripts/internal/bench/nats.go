package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/sim/testport"
)

// nats is a cluster of three NATS servers with JetStream, the peer that replication is measured beside: a file-backed
// stream of three replicas, which acknowledges at two of them.
type nats struct {
	o     options
	nodes []*exec.Cmd
	urls  string
}

// startNATS starts one with empty stores. always: every write is fsynced before it counts; else every two minutes.
func startNATS(o options, always bool) (*nats, error) {
	dir, err := os.MkdirTemp(o.dir, "nats")
	if err != nil {
		return nil, err
	}
	n := &nats{o: o}
	var clients, peers []string
	for range 6 {
		p, err := testport.Take("127.0.0.1")
		if err != nil {
			return nil, err
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number))
		if len(clients) < 3 {
			clients = append(clients, addr)
		} else {
			peers = append(peers, addr)
		}
	}
	sync := ""
	if always {
		sync = "sync_interval: always"
	}
	for i := range clients {
		file := filepath.Join(dir, fmt.Sprintf("n%d.conf", i))
		config := fmt.Sprintf(`server_name: n%d
listen: %q
jetstream { store_dir: %q, max_file_store: 50GB
  %s
}
cluster { name: bench, listen: %q, routes: ["nats://%s"] }
`, i, clients[i], filepath.Join(dir, fmt.Sprint(i)), sync, peers[i], strings.Join(peers, `", "nats://`))
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return nil, err
		}
		cmd := exec.Command(o.natsServer, "-c", file, "-l", file+".log")
		if err := cmd.Start(); err != nil {
			return nil, errors.Join(err, n.stop())
		}
		n.nodes = append(n.nodes, cmd)
	}
	n.urls = "nats://" + strings.Join(clients, ",nats://")
	return n, n.ready()
}

// ready makes the stream, which needs a leader of the cluster first.
func (n *nats) ready() error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, err := n.bench("async", "--create", "--replicas", "3", "--maxbytes", "20GB", "--msgs", "100", "--size", "100")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(err, n.stop())
		}
	}
}

// publish sends messages from some clients, 500 each under way at once, and returns how many a second were acked.
func (n *nats) publish(clients, size, messages int) (float64, error) {
	out, err := n.bench("async", "--purge", "--clients", fmt.Sprint(clients), "--batch", "500", "--size", fmt.Sprint(size), "--msgs", fmt.Sprint(messages))
	if err != nil {
		return 0, err
	}
	return lastNumber(out, natsRate)
}

// oneByOne sends one message after the other and returns the latency's quantiles.
func (n *nats) oneByOne(messages int) (p50, p99 float64, err error) {
	out, err := n.bench("sync", "--purge", "--clients", "1", "--size", "1024", "--msgs", fmt.Sprint(messages))
	if err != nil {
		return 0, 0, err
	}
	p50, err = lastNumber(out, natsP50)
	if err != nil {
		return 0, 0, err
	}
	p99, err = lastNumber(out, natsP99)
	return p50 / 1000, p99 / 1000, err
}

var (
	natsRate = regexp.MustCompile(`([\d,.]+) msgs/sec`)
	natsP50  = regexp.MustCompile(`P50:? ([\d,.]+)us`)
	natsP99  = regexp.MustCompile(`P99:? ([\d,.]+)us`)
)

// lastNumber is the last match: the sum over all clients comes after each one's own.
func lastNumber(out string, re *regexp.Regexp) (float64, error) {
	all := re.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("no %s in what nats bench printed:\n%s", re, out)
	}
	return strconv.ParseFloat(strings.ReplaceAll(all[len(all)-1][1], ",", ""), 64)
}

func (n *nats) bench(how string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.o.nats, append([]string{"-s", n.urls, "bench", "js", "pub", how, "bench", "--no-progress"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("nats bench: %w\n%s", err, out)
	}
	return string(out), nil
}

// cpu is the processor time of all servers.
func (n *nats) cpu() (sum time.Duration, err error) {
	for _, cmd := range n.nodes {
		t, err := (&broker{cmd: cmd}).cpu()
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

func (n *nats) stop() error {
	var errs []error
	for _, cmd := range n.nodes {
		errs = append(errs, cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, cmd := range n.nodes {
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) { // it ends with 1 upon a signal
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
