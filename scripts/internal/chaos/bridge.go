package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// bridge is a network of namespaces, one a node, whose ends all lie on one bridge in the namespace of this process.
type bridge struct {
	hosts []string
	rules []rule // that are in force
}

// rule loses packets that arrive in a node's namespace.
type rule struct {
	node int
	args []string
}

// names is where ip keeps the names of namespaces.
const names = "/run/netns"

// subnet is the nodes' network; the bridge has its last address.
const subnet = "10.77.0."

// newBridge makes namespaces for n nodes. This process must be in a network namespace and a mount namespace of its own:
// the names of namespaces are mounts on files, and go away with the latter.
func newBridge(n int) (*bridge, error) {
	b := &bridge{}
	if err := os.MkdirAll(names, 0o755); err != nil {
		return nil, err
	}
	if err := output("mount", "-t", "tmpfs", "chaos", names); err != nil {
		return nil, err
	}
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "br0", "type", "bridge"},
		{"addr", "add", subnet + "254/24", "dev", "br0"},
		{"link", "set", "br0", "up"},
	}
	for i := range n {
		ns, host := namespace(i), subnet+strconv.Itoa(i+1)
		b.hosts = append(b.hosts, host)
		steps = append(steps, [][]string{
			{"netns", "add", ns},
			{"link", "add", "v" + ns, "type", "veth", "peer", "name", "eth0", "netns", ns},
			{"link", "set", "v" + ns, "master", "br0", "up"},
			{"-n", ns, "addr", "add", host + "/24", "dev", "eth0"},
			{"-n", ns, "link", "set", "eth0", "up"},
			{"-n", ns, "link", "set", "lo", "up"},
		}...)
	}
	for _, step := range steps {
		if err := output("ip", step...); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func namespace(node int) string { return fmt.Sprintf("n%d", node+1) }

// enter lets a node's broker start in its namespace.
func (b *bridge) enter(node int, cmd *exec.Cmd) {
	ip, err := exec.LookPath("ip")
	if err != nil {
		cmd.Err = err
		return
	}
	cmd.Args = append([]string{"ip", "netns", "exec", namespace(node - 1), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = ip
}

// Cut implements chaos.Cutter.
func (b *bridge) Cut(from, to, port int) error {
	source := []string{"INPUT", "-s", b.hosts[from], "-j", "DROP"}
	if port == 0 {
		return b.impose(rule{to, source})
	}
	for _, protocol := range []string{"tcp", "udp"} {
		err := b.impose(rule{to, append(slices.Clip(source), "-p", protocol, "--dport", strconv.Itoa(port))})
		if err != nil {
			return err
		}
	}
	return nil
}

// Lose implements chaos.Cutter.
func (b *bridge) Lose(node int, share float64) error {
	return b.impose(rule{node, []string{
		"INPUT", "-s", subnet + "0/24", "-m", "statistic", "--mode", "random", "--probability", fmt.Sprint(share), "-j", "DROP",
	}})
}

// impose puts a rule in force until all is healed.
func (b *bridge) impose(r rule) error {
	if err := b.iptables(r, "-A"); err != nil {
		return err
	}
	b.rules = append(b.rules, r)
	return nil
}

// Heal implements chaos.Cutter.
func (b *bridge) Heal() error {
	for _, r := range b.rules {
		if err := b.iptables(r, "-D"); err != nil {
			return err
		}
	}
	b.rules = nil
	return nil
}

func (b *bridge) iptables(r rule, change string) error {
	return output("ip", append([]string{"netns", "exec", namespace(r.node), "iptables", "-w", change}, r.args...)...)
}

// output runs a command to its end; what it said is in the error.
func output(name string, args ...string) error {
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(said)))
	}
	return nil
}
