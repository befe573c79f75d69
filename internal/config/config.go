package config

import (
	"net"
	"strconv"
	"time"
)

// Config is the broker's configuration as the program uses it. Each field is one row of the settings table.
type Config struct {
	ClientPort  int `koanf:"client_port"`
	ClusterPort int `koanf:"cluster_port"`
	DataPort    int `koanf:"data_port"`
	AdminPort   int `koanf:"admin_port"` // 0 = no admin listener

	Host          string `koanf:"host"`           // bound by the client, cluster and data ports
	AdminHost     string `koanf:"admin_host"`     // bound by the admin port
	AdvertiseHost string `koanf:"advertise_host"` // told to clients and peers; see [Config.Advertise]

	DataDir string `koanf:"data_dir"`
	MetaDir string `koanf:"meta_dir"`

	NodeID        string            `koanf:"node_id"` // "" = minted at the first start
	Rack          string            `koanf:"rack"`
	Labels        map[string]string `koanf:"labels"`
	VnodesPerNode int               `koanf:"vnodes_per_node"`

	JoinSeedNodes   []string `koanf:"join_seed_nodes"`
	Bootstrap       *bool    `koanf:"bootstrap"` // nil = decide: true with no seeds and an empty directory
	BootstrapExpect int      `koanf:"bootstrap_expect"`
	ClusterKeyFile  string   `koanf:"cluster_key_file"` // "" = membership is not encrypted
	Shards          int      `koanf:"shards"`
	ShardVoters     int      `koanf:"shard_voters"`

	SegmentSizeLimitBytes int64 `koanf:"segment_size_limit_bytes"`
	MaxSegmentAgeSecs     int   `koanf:"max_segment_age_secs"`
	SegmentIdleSecs       int   `koanf:"segment_idle_secs"` // 0 = idleness rolls nothing

	BatchMaxBytes    int64 `koanf:"batch_max_bytes"`
	BatchMaxRecords  int   `koanf:"batch_max_records"`
	BatchLingerMs    int   `koanf:"batch_linger_ms"`
	ReplicaTimeoutMs int   `koanf:"replica_timeout_ms"`
	NodeOutSecs      int   `koanf:"node_out_secs"`

	CacheBudgetBytes int64 `koanf:"cache_budget_bytes"`
	MaxOpenFiles     int   `koanf:"max_open_files"` // segment files held open; beside them the WAL, sockets and the rest
	ReserveBytes     int64 `koanf:"reserve_bytes"`  // kept free in data_dir and in meta_dir for fences, seals, Raft and trims
	MaxRecordBytes   int64 `koanf:"max_record_bytes"`
	MaxConnections   int   `koanf:"max_connections"`

	LogLevel  string `koanf:"log_level"`  // debug, info, warn, error
	LogFormat string `koanf:"log_format"` // text, json
}

// ClientAddress is what the client listener binds.
func (c Config) ClientAddress() string { return hostPort(c.Host, c.ClientPort) }

// ClusterAddress is what the cluster listener binds.
func (c Config) ClusterAddress() string { return hostPort(c.Host, c.ClusterPort) }

// DataAddress is what the data listener binds.
func (c Config) DataAddress() string { return hostPort(c.Host, c.DataPort) }

// AdminAddress is what the admin listener binds; "" when it is switched off.
func (c Config) AdminAddress() string {
	if c.AdminPort == 0 {
		return ""
	}
	return hostPort(c.AdminHost, c.AdminPort)
}

// MaxSegmentAge is max_segment_age_secs as a duration.
func (c Config) MaxSegmentAge() time.Duration { return seconds(c.MaxSegmentAgeSecs) }

// SegmentIdle is segment_idle_secs as a duration.
func (c Config) SegmentIdle() time.Duration { return seconds(c.SegmentIdleSecs) }

// NodeOut is node_out_secs as a duration.
func (c Config) NodeOut() time.Duration { return seconds(c.NodeOutSecs) }

// BatchLinger is batch_linger_ms as a duration.
func (c Config) BatchLinger() time.Duration { return time.Duration(c.BatchLingerMs) * time.Millisecond }

// ReplicaTimeout is replica_timeout_ms as a duration.
func (c Config) ReplicaTimeout() time.Duration {
	return time.Duration(c.ReplicaTimeoutMs) * time.Millisecond
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
