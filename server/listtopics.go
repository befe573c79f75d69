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
)

// listTopics lists topics by name, a page at a time, from all shards. A shard that does not answer is named.
func (s *Server) listTopics(ctx context.Context, req wire.ListTopicsRequest) (wire.ListTopicsResponse, error) {
	if _, err := path.Match(req.Glob, ""); err != nil {
		return wire.ListTopicsResponse{}, base.Errorf(base.CodeInvalidArgument, "list topics", "%q is not a pattern", req.Glob)
	}
	limit := min(cmp.Or(max(req.Limit, 0), defaultPage), maxPage)
	keep := func(t *meta.Topic) bool {
		ok, _ := path.Match(cmp.Or(req.Glob, "*"), t.Name)
		return ok && (req.Internal || !t.Internal)
	}
	var resp wire.ListTopicsResponse
	var page []found
	more := false
	leaders := make(map[base.ShardID]base.NodeID)
	for _, status := range s.host.Status() {
		err := s.host.View(ctx, status.ID, func(st *meta.State) error {
			topics, rest := st.List(req.After, limit, keep)
			more = more || rest
			for _, t := range topics {
				page = append(page, found{t, status.ID})
			}
			return nil
		})
		leaders[status.ID] = status.Leader
		if err != nil {
			resp.Missing = append(resp.Missing, status.ID)
		}
	}
	slices.SortFunc(page, func(a, b found) int { return cmp.Compare(a.Name, b.Name) })
	if len(page) > limit {
		page, more = page[:limit], true
	}
	for _, f := range page {
		resp.Topics = append(resp.Topics, s.topicSummary(f.Topic, f.shard, leaders[f.shard]))
	}
	if more && len(page) > 0 {
		resp.Next = page[len(page)-1].Name
	}
	return resp, nil
}
