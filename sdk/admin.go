package sdk

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// Admin makes, changes, removes and describes topics, and describes the cluster. Any broker takes its requests.
//
// A call lasts until its context ends, or for the client's request timeout when the context has no deadline. A
// change is sent again after a lost answer and still happens once, since its tries share a request id.
type Admin struct{ c *Client }

// CreateTopic makes a topic.
//
// Errors: CodeInvalidTopicName; CodeTopicExists; CodeNotEnoughNodes when the replication factor is above the
// number of live nodes; CodeInvalidArgument for a setting that cannot be.
func (a *Admin) CreateTopic(ctx context.Context, r CreateTopic) (CreatedTopic, error) {
	if err := base.CheckTopicName(r.Name); err != nil {
		return CreatedTopic{}, about("create topic", err)
	}
	var resp CreatedTopic
	err := a.do(ctx, wire.KindCreateTopic, wire.CreateTopicRequest{
		RequestID: newRequestID(), Name: r.Name, Config: r.Config, Ranges: r.Ranges, SplitAt: r.SplitAt,
		AllowUnderReplicated: r.AllowUnderReplicated, DryRun: r.DryRun,
	}, &resp)
	return resp, err
}

// AlterTopic changes settings.
//
// Errors: CodeTopicNotFound; CodeInvalidArgument for an unknown setting or value; CodePreconditionFailed when the
// topic is not what was expected.
func (a *Admin) AlterTopic(ctx context.Context, r AlterTopic) (AlteredTopic, error) {
	var resp AlteredTopic
	err := a.do(ctx, wire.KindAlterTopic, wire.AlterTopicRequest{
		RequestID: newRequestID(), Name: r.Name, ExpectVersion: base.Version(r.ExpectVersion), Set: r.Set,
		Unset: r.Unset, DryRun: r.DryRun, Topic: r.ExpectTopic,
	}, &resp)
	return resp, err
}

// DeleteTopic removes a topic with its data. The name is free at once; the data goes as the brokers that hold it hear
// of it, which TopicRemoved tells.
//
// Errors: CodeTopicNotFound; CodePreconditionFailed when the topic is not what was expected.
func (a *Admin) DeleteTopic(ctx context.Context, r DeleteTopic) (DeletedTopic, error) {
	var resp DeletedTopic
	err := a.do(ctx, wire.KindDeleteTopic, wire.DeleteTopicRequest{
		RequestID: newRequestID(), Name: r.Name, Topic: r.ExpectTopic, ExpectVersion: base.Version(r.ExpectVersion),
		DryRun: r.DryRun,
	}, &resp)
	return resp, err
}

// TopicRemoved reports whether a topic that was deleted has left every disk that held a part of it.
func (a *Admin) TopicRemoved(ctx context.Context, name string, id TopicID) (bool, error) {
	var resp wire.DescribeTopicResponse
	err := a.do(ctx, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: name, Topic: id}, &resp)
	if code := base.CodeOf(err); code == base.CodeTopicNotFound || code == base.CodePreconditionFailed {
		return true, nil
	}
	return false, err
}

// ListTopics lists topics by name, following the pages to the end or to the limit.
func (a *Admin) ListTopics(ctx context.Context, r ListTopics) (TopicList, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var list TopicList
	missing := make(map[ShardID]bool)
	req := wire.ListTopicsRequest{Glob: r.Glob, Internal: r.Internal, Limit: r.Limit}
	for {
		var page wire.ListTopicsResponse
		if err := a.c.ask(ctx, wire.KindListTopics, req, &page); err != nil {
			return list, err
		}
		list.Topics = append(list.Topics, page.Topics...)
		for _, s := range page.Missing {
			if !missing[s] {
				missing[s] = true
				list.Missing = append(list.Missing, s)
			}
		}
		if r.Limit > 0 && len(list.Topics) >= r.Limit {
			list.Topics = list.Topics[:r.Limit]
			return list, nil
		}
		if page.Next == "" || page.Next == req.After {
			return list, nil
		}
		req.After = page.Next
	}
}

// DescribeTopic tells everything about one topic. Errors: CodeTopicNotFound.
func (a *Admin) DescribeTopic(ctx context.Context, name string) (TopicDetail, error) {
	var resp wire.DescribeTopicResponse
	err := a.do(ctx, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: name}, &resp)
	return resp.Topic, err
}

// ClusterStatus is the cluster as the broker that answers sees it.
func (a *Admin) ClusterStatus(ctx context.Context) (ClusterStatus, error) {
	var resp ClusterStatus
	err := a.do(ctx, wire.KindClusterStatus, wire.ClusterStatusRequest{}, &resp)
	return resp, err
}

// ClusterHealth runs the checks; the worst one is the cluster's.
func (a *Admin) ClusterHealth(ctx context.Context) (ClusterHealth, error) {
	var resp ClusterHealth
	err := a.do(ctx, wire.KindClusterHealth, wire.ClusterHealthRequest{}, &resp)
	return resp, err
}

// DescribeNode asks a node about itself; an empty id means whichever answers. Errors: CodeNodeNotFound.
func (a *Admin) DescribeNode(ctx context.Context, id NodeID) (NodeDetail, error) {
	var resp NodeDetail
	err := a.do(ctx, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: id}, &resp)
	return resp, err
}

// Offsets finds one position in each range of a topic that still has data: Earliest() is the first record kept,
// Latest() the end, AtTime(t) the first record appended at or after t (the end when there is none).
func (a *Admin) Offsets(ctx context.Context, topic string, at Start) ([]Position, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var spec startSpec
	at.applyStart(&spec)
	if spec.kind == startPositions {
		return nil, base.Errorf(base.CodeInvalidArgument, "list offsets", "a position is not something to look up")
	}
	r, err := a.c.topics.get(topic).fresh(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[RangeID]bounds)
	err = a.c.listOffsets(ctx, r, rangesOf(r), spec, func(id RangeID, b bounds) { found[id] = b })
	if err != nil {
		return nil, err
	}
	positions := make([]Position, 0, len(found))
	for _, rr := range r.Ranges {
		if b, ok := found[rr.ID]; ok {
			positions = append(positions, Position{Topic: topic, Range: rr.ID, Offset: b.Offset})
		}
	}
	return positions, nil
}

// do asks within the request timeout.
func (a *Admin) do(ctx context.Context, kind wire.Kind, req, resp any) error {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	return a.c.ask(ctx, kind, req, resp)
}

func (a *Admin) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.c.cfg.requestTimeout)
}
