package wire

import "fmt"

// Kind says what a message asks for. A response has the kind of its request. Numbers are never used again.
type Kind uint16

// The kinds, in blocks of sixteen by subject. What is missing from a block is free; PROTOCOL.md lists the numbers
// that are spoken for.
const (
	KindHello Kind = 1
	KindPing  Kind = 2

	KindProduce       Kind = 16
	KindFetch         Kind = 17
	KindListOffsets   Kind = 18
	KindProducerState Kind = 19
	KindLatestByKey   Kind = 20

	KindRoute  Kind = 32
	KindLocate Kind = 33

	KindCreateTopic   Kind = 48
	KindAlterTopic    Kind = 49
	KindDeleteTopic   Kind = 50
	KindListTopics    Kind = 51
	KindDescribeTopic Kind = 52
	KindOpenProducer  Kind = 53

	KindClusterStatus Kind = 64
	KindClusterHealth Kind = 65
	KindDescribeNode  Kind = 66
	KindListNodes     Kind = 67
	KindNodeRing      Kind = 68
	KindReach         Kind = 69
	KindChangeNode    Kind = 70
	KindWatchNode     Kind = 71
	KindWatchLogs     Kind = 72

	KindListShards    Kind = 80
	KindDescribeShard Kind = 81
	KindLocateShard   Kind = 82
	KindTransferShard Kind = 83
	KindBalanceShards Kind = 84
	KindRecoverShard  Kind = 85

	KindListSegments     Kind = 88
	KindDescribeSegment  Kind = 89
	KindSealSegment      Kind = 90
	KindForceSealSegment Kind = 91
)

var kindNames = map[Kind]string{
	KindHello:         "hello",
	KindPing:          "ping",
	KindProduce:       "produce",
	KindFetch:         "fetch",
	KindListOffsets:   "list_offsets",
	KindProducerState: "producer_state",
	KindLatestByKey:   "latest_by_key",
	KindRoute:         "route",
	KindLocate:        "locate",
	KindCreateTopic:   "create_topic",
	KindAlterTopic:    "alter_topic",
	KindDeleteTopic:   "delete_topic",
	KindListTopics:    "list_topics",
	KindDescribeTopic: "describe_topic",
	KindOpenProducer:  "open_producer",
	KindClusterStatus: "cluster_status",
	KindClusterHealth: "cluster_health",
	KindDescribeNode:  "describe_node",
	KindListNodes:     "list_nodes",
	KindNodeRing:      "node_ring",
	KindReach:         "reach",
	KindChangeNode:    "change_node",
	KindWatchNode:     "watch_node",
	KindWatchLogs:     "watch_logs",
	KindListShards:    "list_shards",
	KindDescribeShard: "describe_shard",
	KindLocateShard:   "locate_shard",
	KindTransferShard: "transfer_shard",
	KindBalanceShards: "balance_shards",
	KindRecoverShard:  "recover_shard",

	KindListSegments:     "list_segments",
	KindDescribeSegment:  "describe_segment",
	KindSealSegment:      "seal_segment",
	KindForceSealSegment: "force_seal_segment",
}

// String prints the name that logs, metrics and `eg-cli raw` use.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind_%d", uint16(k))
}

// Known reports whether this version has a name for k.
func (k Kind) Known() bool { return kindNames[k] != "" }
