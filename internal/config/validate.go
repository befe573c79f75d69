package config

import (
	"math/bits"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// maxLabelBytes bounds rack and labels together: they travel in the 512 bytes of a node's gossiped metadata.
const maxLabelBytes = 256

// Validate checks what the bounds of single settings cannot: how they fit together.
func (c Config) Validate() error {
	for _, check := range []func() error{
		c.checkPorts, c.checkHosts, c.checkDirs, c.checkNode, c.checkSeeds, c.checkBootstrap,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkPorts() error {
	seen := make(map[int]string)
	for _, p := range []struct {
		key  string
		port int
	}{
		{"client_port", c.ClientPort},
		{"cluster_port", c.ClusterPort},
		{"data_port", c.DataPort},
		{"admin_port", c.AdminPort},
	} {
		if other, twice := seen[p.port]; twice && p.port != 0 {
			return usageError("give each port a number of its own", "%s and %s are both %d", other, p.key, p.port)
		}
		seen[p.port] = p.key
	}
	return nil
}

func (c Config) checkHosts() error {
	for _, h := range []struct {
		key, host string
		optional  bool
	}{
		{"host", c.Host, false},
		{"admin_host", c.AdminHost, false},
		{"advertise_host", c.AdvertiseHost, true},
	} {
		if h.host == "" && h.optional || isHost(h.host) {
			continue
		}
		return usageError("give an IP address or a name, without a port", "%s: %q is not a host", h.key, h.host)
	}
	return nil
}

// isHost accepts an IP address or a DNS name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || len(label) > 63 || strings.IndexFunc(label, notHostRune) >= 0 {
			return false
		}
	}
	return true
}

func notHostRune(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

func (c Config) checkDirs() error {
	switch {
	case c.DataDir == "":
		return usageError("name the directory that holds the records", "data_dir is empty")
	case c.MetaDir == "":
		return usageError("name the directory that holds the metadata", "meta_dir is empty")
	case within(c.DataDir, c.MetaDir) && within(c.MetaDir, c.DataDir):
		return usageError("give each a directory of its own", "data_dir and meta_dir are both %s", c.DataDir)
	case within(c.DataDir, c.MetaDir):
		return usageError("put them side by side", "data_dir %s is inside meta_dir %s", c.DataDir, c.MetaDir)
	case within(c.MetaDir, c.DataDir):
		return usageError("put them side by side", "meta_dir %s is inside data_dir %s", c.MetaDir, c.DataDir)
	}
	return nil
}

// within reports whether dir is outer or below it, by their names: where links lead is not looked at.
func within(dir, outer string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	outer, err = filepath.Abs(outer)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(outer, dir)
	return err == nil && filepath.IsLocal(rel)
}

func (c Config) checkNode() error {
	if c.NodeID != "" {
		if err := base.NodeID(c.NodeID).Check(); err != nil {
			return usageError("use 1 to 64 letters, digits, '.', '_' and '-'", "node_id: %q cannot name a node", c.NodeID)
		}
	}
	total := len(c.Rack)
	for k, v := range c.Labels {
		total += len(k) + len(v) + 2
	}
	if total > maxLabelBytes {
		return usageError("shorten them", "rack and labels have %d bytes together, at most %d fit in a node's gossip", total, maxLabelBytes)
	}
	return nil
}

func (c Config) checkSeeds() error {
	for _, seed := range c.JoinSeedNodes {
		host, port, err := net.SplitHostPort(seed)
		if err != nil && isHost(seed) {
			hint := "write " + net.JoinHostPort(seed, "2922")
			if i := strings.LastIndexByte(seed, ':'); i > 0 && net.ParseIP(seed[:i]) != nil { // ::1:2922 is an address by itself
				hint += ", or " + net.JoinHostPort(seed[:i], seed[i+1:])
			}
			return usageError(hint, "join_seed_nodes: %q has no port", seed)
		}
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil || n == 0 || !isHost(host) {
			return usageError("write host:port, with the other node's cluster port", "join_seed_nodes: %q is not host:port", seed)
		}
	}
	return nil
}

func (c Config) checkBootstrap() error {
	if bits.OnesCount(uint(c.Shards)) != 1 {
		return usageError("use a power of two such as 32", "shards: %d is not a power of two", c.Shards)
	}
	if c.BootstrapExpect == 0 {
		return nil
	}
	// The founders are the seeds and this node, which its own list may or may not name: the checks here refuse
	// only what is wrong either way.
	seeds := len(c.JoinSeedNodes)
	switch {
	case c.Bootstrap != nil && *c.Bootstrap:
		return usageError("set one of the two", "bootstrap founds a cluster alone, bootstrap_expect %d together with others", c.BootstrapExpect)
	case seeds == 0:
		return usageError("name the other founders in join_seed_nodes", "bootstrap_expect %d needs join_seed_nodes", c.BootstrapExpect)
	case c.BootstrapExpect > seeds+1:
		return usageError("name all founders in join_seed_nodes", "bootstrap_expect %d is more than this node and the %d others named", c.BootstrapExpect, seeds)
	case 2*c.BootstrapExpect <= seeds:
		return usageError("raise it, or two halves could each found a cluster", "bootstrap_expect %d is not more than half of the %d nodes named", c.BootstrapExpect, seeds)
	}
	return nil
}
