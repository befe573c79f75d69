package sdk

import "github.com/eastguard/eastguard/internal/wire"

// What Admin answers with. Field comments are with the types.
type (
	// CreatedTopic is a topic made, or that would be.
	CreatedTopic = wire.CreateTopicResponse
	// AlteredTopic shows each changed setting before and after.
	AlteredTopic = wire.AlterTopicResponse
	// DeletedTopic counts what goes with a topic.
	DeletedTopic = wire.DeleteTopicResponse
	// TopicSummary is a topic's row in a list.
	TopicSummary = wire.TopicSummary
	// TopicDetail is everything about one topic.
	TopicDetail = wire.TopicDetail
	// RangeDetail is everything about one range.
	RangeDetail = wire.RangeDetail
	// SegmentDetail is everything about one segment.
	SegmentDetail = wire.SegmentDetail
	// ReplicaDetail is one copy of a segment.
	ReplicaDetail = wire.ReplicaDetail
	// Setting is one effective setting and where it comes from.
	Setting = wire.Setting
	// NodeAddress is where clients reach a node.
	NodeAddress = wire.NodeAddress
	// ClusterStatus is the cluster as one node sees it.
	ClusterStatus = wire.ClusterStatusResponse
	// ClusterHealth is every check with its verdict.
	ClusterHealth = wire.ClusterHealthResponse
	// HealthCheck is one check.
	HealthCheck = wire.HealthCheck
	// HealthResult is a check's verdict.
	HealthResult = wire.HealthResult
	// NodeStatus is one node in ClusterStatus.
	NodeStatus = wire.NodeStatus
	// ShardStatus is one metadata group.
	ShardStatus = wire.ShardStatus
	// NodeDetail is everything a node knows about itself.
	NodeDetail = wire.DescribeNodeResponse
	// Event is one line of a node's journal.
	Event = wire.Event
)

// The verdicts of a HealthCheck; higher is worse.
const (
	HealthPass = wire.HealthPass
	HealthWarn = wire.HealthWarn
	HealthFail = wire.HealthFail
)

// CreateTopic says what topic to make.
type CreateTopic struct {
	Name string
	// Config holds the settings; a ReplicationFactor of 0 means min(3, nodes).
	Config TopicConfig
	// Ranges is how many ranges to begin with, a power of two; 0 means 1.
	Ranges int
	// SplitAt cuts the key space at these hashes, in place of Ranges.
	SplitAt []uint64
	// AllowUnderReplicated makes the topic though fewer nodes live than its factor; it is repaired as nodes join.
	AllowUnderReplicated bool
	// DryRun answers what would be made and changes nothing.
	DryRun bool
}

// AlterTopic says what settings to change, in the words of TopicConfig.Set.
type AlterTopic struct {
	Name  string
	Set   map[string]string
	Unset []string
	// ExpectVersion makes the call fail with CodePreconditionFailed if the topic has changed since; 0 means any.
	ExpectVersion uint64
	// ExpectTopic makes the call fail if the name now means another topic; zero means any.
	ExpectTopic TopicID
	DryRun      bool
}

// DeleteTopic says what topic to remove, with its data.
type DeleteTopic struct {
	Name string
	// ExpectVersion makes the call fail with CodePreconditionFailed if the topic has changed since; 0 means any.
	ExpectVersion uint64
	// ExpectTopic makes the call fail if the name now means another topic; zero means any.
	ExpectTopic TopicID
	DryRun      bool
}

// ListTopics selects topics.
type ListTopics struct {
	// Glob filters names; empty means all.
	Glob string
	// Internal includes system topics.
	Internal bool
	// Limit stops after so many; 0 means all.
	Limit int
}

// TopicList is what ListTopics found.
type TopicList struct {
	Topics []TopicSummary // by name
	// Missing names the parts of the metadata that did not answer: their topics are not in the list.
	Missing []ShardID
}
