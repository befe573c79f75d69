package server

import (
	"context"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/wire"
)

// createTopic makes a topic. When it answers, every range takes appends: its first segment is durable on its replicas.
// A retry with the same request id gets the same answer.
func (s *Server) createTopic(ctx context.Context, shard base.ShardID, req wire.CreateTopicRequest) (wire.CreateTopicResponse, error) {
	const op = "create topic"
	var cmd meta.Command
	var explain []string
	err := s.withComing(ctx, func() (err error) {
		cmd, explain, err = s.planTopic(req)
		return err
	})
	var result meta.Result
	switch {
	case err != nil:
		result, err = s.answered(ctx, op, shard, req.RequestID, err)
	case req.DryRun:
		return s.dryCreate(ctx, op, shard, cmd, explain)
	default:
		result, err = s.propose(ctx, op, shard, cmd)
	}
	if err != nil {
		return wire.CreateTopicResponse{}, err
	}
	topic, err := s.onceOpen(ctx, op, shard, result)
	if err != nil {
		return wire.CreateTopicResponse{}, made(op, err, req.RequestID)
	}
	return wire.CreateTopicResponse{
		Topic: s.topicDetail(topic, shard, s.extentsOfNew(topic)), Shard: shard, ShardLeader: s.shardLeader(shard), Explain: explain,
	}, nil
}

// answered is what a request was answered when it came before, or refusal when it did not: a retry is not refused for
// what has changed since.
func (s *Server) answered(ctx context.Context, op string, shard base.ShardID, id base.RequestID, refusal error) (meta.Result, error) {
	if id.IsZero() {
		return meta.Result{}, refusal
	}
	var result meta.Result
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		r, ok := st.Answered(id)
		if !ok {
			return refusal
		}
		result = r
		return r.Err(op)
	})
	return result, err
}

// applied is an error met after the command was committed: whatever it says, the command took effect.
func applied(op string, err error) error {
	var e *base.Error
	if !errors.As(err, &e) {
		e = base.Wrap(base.CodeInternal, op, err)
	}
	return e.WithOutcome(base.Applied)
}

// made is an error met after a topic was made. One that another leader can put right is worth a retry under the request's
// id, which finds the topic made and waits for it to open there.
func made(op string, err error, id base.RequestID) error {
	e := applied(op, err)
	switch base.CodeOf(err) {
	case base.CodeNotLeader, base.CodeNoLeader:
		if !id.IsZero() {
			return base.Wrap(base.CodeOf(err), op, err).WithOutcome(base.Unknown)
		}
	}
	return e
}

// onceOpen returns a topic that has been created, once every range of it takes appends.
func (s *Server) onceOpen(ctx context.Context, op string, shard base.ShardID, created meta.Result) (*meta.Topic, error) {
	if created.Topic == nil { // of a retry
		return nil, base.Errorf(base.CodeTopicNotFound, op, "topic %s was deleted again", created.TopicID)
	}
	return created.Topic, s.awaitOpen(ctx, op, found{created.Topic, shard})
}

// mostExplained is how many sentences on placement an answer carries; a thousand ranges would have a million.
const mostExplained = 64

// planTopic checks the request and chooses where the first segments go. It says why, of the first ranges.
func (s *Server) planTopic(req wire.CreateTopicRequest) (meta.Command, []string, error) {
	const op = "create topic"
	if err := base.CheckTopicName(req.Name); err != nil {
		return meta.Command{}, nil, err
	}
	spans, err := initialSpans(req)
	if err != nil {
		return meta.Command{}, nil, err
	}
	if req.Config.Keyed {
		return meta.Command{}, nil, base.Errorf(base.CodeInvalidArgument, op, "keyed topics are made by the brokers alone")
	}
	id, err := base.NewUUID(s.deps.Rand)
	if err != nil {
		return meta.Command{}, nil, base.Wrap(base.CodeInternal, op, err)
	}
	cmd, explain, err := planner.CreateTopic(planner.TopicRequest{
		RequestID: req.RequestID, ID: id, Name: req.Name, Config: req.Config, Spans: spans,
		AllowUnderReplicated: req.AllowUnderReplicated,
	}, s.connected(), s.dice(), time.Now().UnixMilli())
	s.deps.Logger.Debug("topic planned", "topic", req.Name, "explain", explain)
	return cmd, explain[:min(len(explain), mostExplained)], err
}

// initialSpans cuts the key space as the request asks: into equal parts, or at given points.
func initialSpans(req wire.CreateTopicRequest) ([]keyspace.Span, error) {
	const op = "create topic"
	n := max(req.Ranges, 1)
	if len(req.SplitAt) == 0 {
		if req.Ranges < 0 || n > meta.MaxRanges || n&(n-1) != 0 {
			return nil, base.Errorf(base.CodeInvalidArgument, op, "%d ranges: their number must be a power of two, at most %d", req.Ranges, meta.MaxRanges)
		}
		return keyspace.Tile(n), nil
	}
	if req.Ranges != 0 && req.Ranges != len(req.SplitAt)+1 {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "%d split points make %d ranges, not %d", len(req.SplitAt), len(req.SplitAt)+1, req.Ranges)
	}
	if len(req.SplitAt) >= meta.MaxRanges {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "%d split points: at most %d ranges can be made at once", len(req.SplitAt), meta.MaxRanges)
	}
	spans := make([]keyspace.Span, 0, len(req.SplitAt)+1)
	rest := keyspace.Full
	for _, p := range req.SplitAt {
		left, right, ok := rest.SplitAt(p)
		if !ok {
			return nil, base.Errorf(base.CodeInvalidArgument, op, "split point %#016x is not inside %s: give them in order, each once", p, rest)
		}
		spans = append(spans, left)
		rest = right
	}
	return append(spans, rest), nil
}

func (s *Server) dryCreate(ctx context.Context, op string, shard base.ShardID, cmd meta.Command, explain []string) (wire.CreateTopicResponse, error) {
	var planned *meta.Topic
	err := s.host.View(ctx, shard, func(st *meta.State) error {
		result := st.DryRun(cmd)
		planned = result.Topic
		return result.Err(op)
	})
	if err != nil {
		return wire.CreateTopicResponse{}, err
	}
	resp := wire.CreateTopicResponse{Shard: shard, ShardLeader: s.shardLeader(shard), DryRun: true, Explain: explain}
	if planned != nil {
		resp.Topic = s.topicDetail(planned, shard, s.extentsOfNew(planned))
	}
	return resp, nil
}

// awaitOpen waits until every range of a new topic takes appends. Those that are led here are looked at; of the others
// the coordinator hears when they are open.
func (s *Server) awaitOpen(ctx context.Context, op string, f found) error {
	elsewhere := false
	for _, r := range f.Ranges {
		if r.Active() == nil {
			continue
		}
		if r.Active().Leader().Node != s.id.Node {
			elsewhere = true
			continue
		}
		err := s.plane.AwaitLead(ctx, base.RangeRef{Topic: f.ID, Range: r.ID})
		switch {
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return notOpen(op, f)
		case errors.Is(err, base.CodeSegmentMoved), errors.Is(err, base.CodeNotReplica): // this node is about to stop, and the range goes on at another
			elsewhere = true
		default:
			return err
		}
	}
	c := s.coord.Load()
	if !elsewhere || c == nil {
		return nil
	}
	err := c.AwaitOpen(ctx, f.shard, f.ID)
	if errors.Is(err, base.CodeTimeout) {
		return notOpen(op, f)
	}
	return err
}

func notOpen(op string, f found) error {
	return base.Errorf(base.CodeTimeout, op, "topic %s exists, but not all of its ranges are open yet", f.Name).
		WithHint("they open by themselves; see: eg-cli topic describe %s", f.Name)
}
