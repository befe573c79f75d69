package server

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	defaultPage = 1000
	maxPage     = 5000
	// pageBytes bounds what one node adds to a page, so that it fits into a message whatever the topics' labels.
	pageBytes = 4 << 20
	// rowBytes is about what a row takes without its labels.
	rowBytes = 200
)

// listTopics lists topics by name, a page at a time, from all shards. A shard that does not answer is named.
func (s *Server) listTopics(ctx context.Context, req wire.ListTopicsRequest) (wire.ListTopicsResponse, error) {
	if _, err := path.Match(req.Glob, ""); err != nil {
		return wire.ListTopicsResponse{}, base.Errorf(base.CodeInvalidArgument, "list topics", "%q is not a pattern", req.Glob)
	}
	req.Limit = min(cmp.Or(max(req.Limit, 0), defaultPage), maxPage)
	var parts []gatherAnswer
	var resp wire.ListTopicsResponse
	resp.Missing = s.gather(ctx, gatherRequest{List: &req}, func(a gatherAnswer) { parts = append(parts, a) })
	var more bool
	resp.Topics, more = mergePages(parts, req.Limit)
	if more && len(resp.Topics) > 0 {
		resp.Next = resp.Topics[len(resp.Topics)-1].Name
	}
	slices.SortFunc(resp.Missing, compareShards)
	return resp, nil
}

// listShard is one shard's part of a page. Rows are made outside the view: topics are immutable.
func (s *Server) listShard(ctx context.Context, shard base.ShardID, req wire.ListTopicsRequest) (rows []wire.TopicSummary, more bool, err error) {
	limit := min(cmp.Or(max(req.Limit, 0), defaultPage), maxPage)
	pattern := cmp.Or(req.Glob, "*")
	keep := func(t *meta.Topic) bool {
		if t.Internal && !req.Internal {
			return false
		}
		ok, _ := path.Match(pattern, t.Name)
		return ok
	}
	var topics []*meta.Topic
	err = s.host.View(ctx, shard, func(st *meta.State) error {
		topics, more = st.List(req.After, limit, keep)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	x := s.extents(ctx, topics...)
	rows = make([]wire.TopicSummary, len(topics))
	for i, t := range topics {
		rows[i] = s.topicSummary(t, shard, s.id.Node, x)
	}
	rows, cut := firstTopics(rows, limit, more)
	return rows, cut, nil
}

// firstTopics sorts rows by name and keeps as many as belong on one page.
func firstTopics(rows []wire.TopicSummary, limit int, more bool) ([]wire.TopicSummary, bool) {
	limit = min(cmp.Or(max(limit, 0), defaultPage), maxPage)
	slices.SortFunc(rows, func(a, b wire.TopicSummary) int { return cmp.Compare(a.Name, b.Name) })
	size := 0
	for i := range rows {
		size += rowBytes + len(rows[i].Name)
		for k, v := range rows[i].Labels {
			size += len(k) + len(v) + 4
		}
		if i >= limit || i > 0 && size > pageBytes {
			return rows[:i], true
		}
	}
	return rows, more
}

// mergePages makes one page of several. What lies behind the end of a part that has more is left for the next page, for
// that part may have some before it.
func mergePages(parts []gatherAnswer, limit int) (rows []wire.TopicSummary, more bool) {
	end := ""
	for _, p := range parts {
		rows = append(rows, p.Topics...)
		if p.More && len(p.Topics) > 0 {
			if last := p.Topics[len(p.Topics)-1].Name; !more || last < end {
				end = last
			}
			more = true
		}
	}
	if more {
		rows = slices.DeleteFunc(rows, func(r wire.TopicSummary) bool { return r.Name > end })
	}
	return firstTopics(rows, limit, more)
}

func compareShards(a, b base.ShardID) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.PathLen, b.PathLen), cmp.Compare(a.Path, b.Path))
}
