package config

import (
	"math"
	"strings"
)

// Kind is the type of a setting's value.
type Kind uint8

// The kinds of settings.
const (
	KindString  Kind = iota
	KindInt          // with bounds; bytes take units such as 10MiB
	KindTriBool      // true, false, or unset: the broker decides
	KindList         // comma-separated, or a YAML list
	KindMap          // key=value pairs, comma-separated, or a YAML mapping
)

// String names the kind as help and errors do.
func (k Kind) String() string {
	switch k {
	case KindInt:
		return "integer"
	case KindTriBool:
		return "true|false"
	case KindList:
		return "list"
	case KindMap:
		return "k=v,..."
	case KindString:
	}
	return "string"
}

// Setting is one row of the table.
type Setting struct {
	Key      string
	Kind     Kind
	Default  any    // string, int64, []string, map[string]string; nil for an unset KindTriBool
	Min, Max int64  // bounds of a KindInt
	Unit     string // "bytes", "s", "ms", or "": what a KindInt counts
	OneOf    []string
	Help     string // one sentence
}

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

// settings is the one table. The order is that of `eastguard --help` and `eastguard config print`.
var settings = []Setting{
	port("client_port", 2921, 0, "TCP port for clients: the SDK, eg-cli and eg-top; 0 takes a free one"),
	port("cluster_port", 2922, 0, "UDP and TCP port for membership, Raft and control between nodes"),
	port("data_port", 2923, 0, "TCP port for replication and catch-up between nodes"),
	port("admin_port", 2924, 0, "TCP port for /metrics, /healthz, /readyz and /debug/pprof; 0 switches it off"),
	text("host", "0.0.0.0", "address that the client, cluster and data ports are bound to"),
	text("admin_host", "127.0.0.1", "address that the admin port is bound to"),
	text("advertise_host", "", "address told to clients and other nodes; unset: host, or the first routable address when host is unspecified"),
	text("data_dir", "./eastguard/data", "directory of records: identity, write-ahead log and segments"),
	text("meta_dir", "./eastguard/meta", "directory of metadata: Raft log, votes and snapshots"),
	text("node_id", "", "name of this node for the life of its disk; unset: minted at the first start"),
	text("rack", "", "rack or zone of this node; replicas are spread over racks"),
	{Key: "labels", Kind: KindMap, Default: map[string]string(nil), Help: "labels of this node for placement rules, such as disk=ssd,zone=a"},
	count("vnodes_per_node", 1024, 1, 4096, "tokens of this node on the placement ring"),
	{Key: "join_seed_nodes", Kind: KindList, Default: []string(nil), Help: "host:port of the cluster port of nodes to join through"},
	{Key: "bootstrap", Kind: KindTriBool, Help: "found a new cluster by itself; unset: only with no seeds and an empty data directory"},
	count("bootstrap_expect", 0, 0, 99, "found a new cluster when this many of join_seed_nodes and this node have agreed to; 0: do not"),
	text("cluster_key_file", "", "file with a key in hexadecimal that encrypts membership, of mode 0600, the same on all nodes; make one with: openssl rand -hex 32"),
	count("shards", 32, 1, 1000, "metadata shards, a power of two; fixed when the cluster is founded"),
	count("shard_voters", 3, 1, 9, "nodes that vote in each metadata shard"),
	size("segment_size_limit_bytes", gib, 64*kib, 4095*mib, "size at which a segment is sealed and its successor opened"),
	amount("max_segment_age_secs", "s", 3600, 1, 10*365*86400, "age at which a segment with records is sealed"),
	amount("segment_idle_secs", "s", 0, 0, 10*365*86400, "time without a record after which a segment with records is sealed; 0: never"),
	size("batch_max_bytes", 10*mib, 64*kib, gib, "bytes of the write-ahead log after which a commit is written at once"),
	count("batch_max_records", 20_000, 1, 10_000_000, "records after which a commit is written at once"),
	amount("batch_linger_ms", "ms", 10, 0, 1000, "longest time a commit waits for more records while the disk is busy"),
	amount("replica_timeout_ms", "ms", 750, 50, 60_000, "time after which a replica that does not answer is left behind"),
	amount("node_out_secs", "s", 300, 10, 30*86400, "time after which a dead node's copies are made anew elsewhere"),
	size("cache_budget_bytes", 128*mib, mib, tib, "memory for recent records"),
	count("max_open_files", 512, 16, 1_000_000, "segment files held open at once"),
	size("reserve_bytes", 64*mib, 0, tib, "disk space kept free in each directory for seals, metadata and deletes"),
	size("max_record_bytes", mib, kib, 64*mib, "largest record accepted"),
	count("max_connections", 10_000, 1, 1_000_000, "client connections accepted at once"),
	choice("log_level", "info", []string{"debug", "info", "warn", "error"}, "least level that is logged"),
	choice("log_format", "text", []string{"text", "json"}, "form of log lines; text has colours on a terminal"),
}

// Settings lists the table's rows, in the order in which they are printed.
func Settings() []Setting { return append([]Setting(nil), settings...) }

func text(key, value, help string) Setting {
	return Setting{Key: key, Kind: KindString, Default: value, Help: help}
}

func choice(key, value string, oneOf []string, help string) Setting {
	return Setting{Key: key, Kind: KindString, Default: value, OneOf: oneOf, Help: help}
}

func port(key string, value, lowest int64, help string) Setting {
	return count(key, value, lowest, math.MaxUint16, help)
}

func count(key string, value, lowest, highest int64, help string) Setting {
	return amount(key, "", value, lowest, highest, help)
}

func size(key string, value, lowest, highest int64, help string) Setting {
	return amount(key, "bytes", value, lowest, highest, help)
}

func amount(key, unit string, value, lowest, highest int64, help string) Setting {
	return Setting{Key: key, Kind: KindInt, Unit: unit, Default: value, Min: lowest, Max: highest, Help: help}
}

// Flag is the setting's name on the command line, without the dashes.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Env lists the setting's names in the environment; the first one set wins.
func (s Setting) Env() []string {
	bare := strings.ToUpper(s.Key)
	return []string{"EASTGUARD_" + bare, bare}
}

// find returns the row of key.
func find(key string) (Setting, bool) {
	for _, s := range settings {
		if s.Key == key {
			return s, true
		}
	}
	return Setting{}, false
}
