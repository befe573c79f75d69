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
	defaultPage = 5000
	maxPage     = 5000
	// pageBytes bounds what one node adds to a page, so that it fits into a message whatever the topics' labels.
	pageBytes = 4 << 20
	// rowBytes is about what a row takes without its labels.
	rowBytes = 200
)

// pageLimit is how many topics a page has at most.
func pageLimit(asked int) int { return min(cmp.Or(max(asked, 0), defaultPage), maxPage) }

// listTopics lists topics by name, a page at a time, from all shards. A shard that does not answer is named.
func (s *Server) listTopics(ctx context.Context, req wire.ListTopicsRequest) (wire.ListTopicsResponse, error) {
	if _, err := path.Match(req.Glob, ""); err != nil {
		return wire.ListTopicsResponse{}, base.Errorf(base.CodeInvalidArgument, "list topics", "%q is not a pattern", req.Glob)
	}
	req.Limit = pageLimit(req.Limit)
	var answers []gatherAnswer
	var resp wire.ListTopicsResponse
	resp.Missing = s.gather(ctx, gatherRequest{List: &req}, func(a gatherAnswer) { answers = append(answers, a) })
	var more bool
	resp.Topics, more = mergeAnswers(answers, req.Limit)
	if more && len(resp.Topics) > 0 {
		resp.Next = resp.Topics[len(resp.Topics)-1].Name
	}
	slices.SortFunc(resp.Missing, base.ShardID.Compare)
	return resp, nil
}

// shardLimit is how many rows of each shard are looked at for a page. Topics are spread evenly, so that a little more
// than a shard's share will nearly always do; where it does not, the page ends earlier.
func (s *Server) shardLimit(page int) int { return min(page, 2*page/max(s.host.Shards(), 1)+32) }

// listShard is what one shard has for a page.
func (s *Server) listShard(ctx context.Context, shard base.ShardID, req wire.ListTopicsRequest) (part pagePart[found], err error) {
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
		topics, part.more = st.List(req.After, s.shardLimit(pageLimit(req.Limit)), keep)
		return nil
	})
	for _, t := range topics {
		part.rows = append(part.rows, found{t, shard})
	}
	return part, err
}

// pagePart is what one source has for a page.
type pagePart[T any] struct {
	rows []T  // by their keys
	more bool // there are some behind the last of them; then there is one at least
}

// mergePage makes one page of several parts. It ends where a part ends that has more, for what comes next may be behind
// that; the next page begins there.
func mergePage[T any, K cmp.Ordered](parts []pagePart[T], limit int, key func(*T) K, size func(*T) int) (rows []T, more bool) {
	next := make([]int, len(parts))
	head := func(i int) *T { return &parts[i].rows[next[i]] }
	for bytes := 0; ; {
		first := -1
		for i, p := range parts {
			switch {
			case next[i] == len(p.rows) && p.more:
				return rows, true
			case next[i] == len(p.rows):
			case first < 0 || key(head(i)) < key(head(first)):
				first = i
			}
		}
		if first < 0 {
			return rows, false
		}
		row := head(first)
		bytes += size(row)
		if len(rows) == limit || len(rows) > 0 && bytes > pageBytes {
			return rows, true
		}
		rows = append(rows, *row)
		next[first]++
	}
}

// page makes a page's rows of what the shards led here have for it. Only those that belong on the page are made.
func (s *Server) page(ctx context.Context, parts []pagePart[found], limit int) ([]wire.TopicSummary, bool) {
	list, more := mergePage(parts, limit,
		func(f *found) string { return f.Name }, func(f *found) int { return rowSize(f.Name, f.Config.Labels) })
	topics := make([]*meta.Topic, len(list))
	for i, f := range list {
		topics[i] = f.Topic
	}
	x := s.extents(ctx, topics...)
	rows := make([]wire.TopicSummary, len(list))
	for i, f := range list {
		rows[i] = s.topicSummary(f.Topic, f.shard, s.id.Node, x)
	}
	return rows, more
}

// mergeAnswers makes the page of what the nodes have sent.
func mergeAnswers(answers []gatherAnswer, limit int) ([]wire.TopicSummary, bool) {
	parts := make([]pagePart[wire.TopicSummary], len(answers))
	for i, a := range answers {
		parts[i] = pagePart[wire.TopicSummary]{a.Topics, a.More}
	}
	return mergePage(parts, limit,
		func(r *wire.TopicSummary) string { return r.Name }, func(r *wire.TopicSummary) int { return rowSize(r.Name, r.Labels) })
}

func rowSize(name string, labels map[string]string) int {
	size := rowBytes + len(name)
	for k, v := range labels {
		size += len(k) + len(v) + 4
	}
	return size
}
