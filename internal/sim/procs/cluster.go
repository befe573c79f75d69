package procs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/sim/testport"
	"github.com/eastguard/eastguard/sdk"
)

// Options say what a cluster is like.
type Options struct {
	Dir     string                         // on the disk that is to be used
	Command func(args ...string) *exec.Cmd // a broker with these arguments
	Args    []string                       // for every broker
	Founder bool                           // the first node founds the cluster; else the first three do so together
	Hosts   []string                       // addresses of the nodes, which are theirs alone; none: all are on loopback
	Enter   func(node int, cmd *exec.Cmd)  // may change how a node's broker is started: in a network of its own; nil: nothing
}

// Cluster is some nodes that know each other.
type Cluster struct {
	Nodes []*Node

	options Options
	ports   []*testport.Port // claimed as long as the cluster is in use: one that was closed starts again
}

// founders is how many nodes found a cluster together.
const founders = 3

// New makes n nodes with empty directories, and starts none.
func New(o Options, n int) (*Cluster, error) {
	c := &Cluster{options: o}
	for range n {
		if err := c.place(); err != nil {
			return nil, err
		}
	}
	for _, node := range c.Nodes { // now that all addresses are known
		node.args = append(node.args, "--join-seed-nodes", c.seeds())
	}
	return c, nil
}

// Add makes one more node, which joins through the first ones.
func (c *Cluster) Add() (*Node, error) {
	if err := c.place(); err != nil {
		return nil, err
	}
	n := c.Nodes[len(c.Nodes)-1]
	n.args = append(n.args, "--join-seed-nodes", c.seeds())
	return n, nil
}

// seeds are the nodes that others join through.
func (c *Cluster) seeds() string {
	var list []string
	for _, n := range c.Nodes[:min(founders, len(c.Nodes))] {
		list = append(list, n.Peers)
	}
	return strings.Join(list, ",")
}

// place makes a node's directory and finds ports for it.
func (c *Cluster) place() error {
	i := len(c.Nodes) + 1
	n := &Node{Name: fmt.Sprintf("n%d", i), start: c.command(i)}
	n.Dir = filepath.Join(c.options.Dir, n.Name)
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return err
	}
	host := "127.0.0.1"
	if i <= len(c.options.Hosts) {
		host = c.options.Hosts[i-1]
	}
	for port, addr := range []*string{&n.Client, &n.Peers, &n.Data, &n.Control} {
		number, err := c.port(host, port)
		if err != nil {
			return err
		}
		*addr = net.JoinHostPort(host, strconv.Itoa(number))
	}
	n.args = append([]string{
		"--node-id", n.Name, "--host", host, "--client-port", portOf(n.Client), "--cluster-port", portOf(n.Peers),
		"--data-port", portOf(n.Data), "--admin-port", portOf(n.Control), "--log-format", "json",
		"--data-dir", filepath.Join(n.Dir, "data"), "--meta-dir", filepath.Join(n.Dir, "meta"),
	}, c.options.Args...)
	switch {
	case c.options.Founder && i == 1:
		n.args = append(n.args, "--bootstrap=true")
	case !c.options.Founder && i <= founders:
		n.args = append(n.args, "--bootstrap-expect", fmt.Sprint(founders))
	}
	c.Nodes = append(c.Nodes, n)
	return nil
}

// port is a node's n-th port: the usual one where the address is the node's alone.
func (c *Cluster) port(host string, n int) (int, error) {
	if len(c.options.Hosts) > 0 {
		return usualPort + n, nil
	}
	p, err := testport.Take(host)
	if err != nil {
		return 0, err
	}
	c.ports = append(c.ports, p)
	return p.Number, nil
}

const usualPort = 2921 // the first of four

// command is how the i-th node's broker is started.
func (c *Cluster) command(i int) func(args ...string) *exec.Cmd {
	return func(args ...string) *exec.Cmd {
		cmd := c.options.Command(args...)
		if c.options.Enter != nil {
			c.options.Enter(i, cmd)
		}
		return cmd
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// Start starts all nodes that do not run and returns at once.
func (c *Cluster) Start() error {
	for _, n := range c.Nodes {
		if n.Running() {
			continue
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all processes, whatever state they are in.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.Nodes {
		if n.Running() {
			errs = append(errs, n.Kill())
		}
	}
	return errors.Join(errs...)
}

// Stop ends all processes in good order, all at once.
func (c *Cluster) Stop(within time.Duration) error {
	errs := make(chan error, len(c.Nodes))
	stopping := 0
	for _, n := range c.Nodes {
		if n.Running() {
			stopping++
			go func() { errs <- n.Stop(within) }()
		}
	}
	var all []error
	for range stopping {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// KillAll ends all processes by kill -9, at the same time.
func (c *Cluster) KillAll() error {
	for _, n := range c.Nodes {
		if n.Running() {
			if err := n.Signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
	}
	return c.Close()
}

// Client makes a client that begins with some nodes, all if none are named.
func (c *Cluster) Client(nodes ...*Node) (*sdk.Client, error) {
	if len(nodes) == 0 {
		nodes = c.Nodes
	}
	var seeds []string
	for _, n := range nodes {
		seeds = append(seeds, n.Client)
	}
	return sdk.NewClient(sdk.WithSeeds(seeds...))
}

// Healthy waits until each of the nodes finds the cluster, of so many living nodes, in good health, and returns when
// that was so. Warnings do not count.
func (c *Cluster) Healthy(within time.Duration, alive int, nodes ...*Node) error {
	if len(nodes) == 0 {
		nodes = c.Nodes
	}
	deadline := time.Now().Add(within)
	for _, n := range nodes {
		client, err := c.Client(n)
		if err != nil {
			return err
		}
		err = awaitHealth(client, alive, deadline)
		_ = client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", n.Name, err, n.Log(20))
		}
	}
	return nil
}

func awaitHealth(client *sdk.Client, alive int, deadline time.Time) error {
	var last string
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		health, err := client.Admin().ClusterHealth(ctx)
		cancel()
		switch {
		case err != nil:
			last = err.Error()
		case health.Nodes != alive:
			last = fmt.Sprintf("%d nodes live, wanted %d", health.Nodes, alive)
		case health.Worst() == sdk.HealthFail:
			last = fmt.Sprintf("%+v", health.Checks)
		default:
			return nil
		}
		time.Sleep(lookEvery)
	}
	return errors.New("the cluster is not healthy in time: " + last)
}

// lookEvery is how often brokers are asked for what is waited for.
const lookEvery = 5 * time.Millisecond
