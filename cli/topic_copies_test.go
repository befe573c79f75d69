package cli

import (
	"strings"
	"testing"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// What there are of copies, and what nobody could count, is said.
func TestTopicDescribeIsHonest(t *testing.T) {
	segment := func(replicas ...base.NodeID) sdk.SegmentDetail {
		s := sdk.SegmentDetail{ID: 1, State: base.StateActive}
		for _, n := range replicas {
			s.Replicas = append(s.Replicas, sdk.ReplicaDetail{Node: n, State: "in_sync"})
		}
		s.Copies = len(replicas)
		return s
	}
	silent := segment("n3")
	silent.Unknown = true
	behind := segment("n1", "n2", "n3")
	behind.Replicas[2].State, behind.Copies = "behind", 2
	for name, c := range map[string]struct {
		copies   int
		segments []sdk.SegmentDetail
		want     []string
	}{
		"as many as asked for": {3, []sdk.SegmentDetail{segment("n1", "n2", "n3")}, []string{"factor 3\n"}},
		"fewer than asked for": {3, []sdk.SegmentDetail{segment("n1", "n2")}, []string{"factor 3; 1 segment with fewer copies, down to 2 of 3\n"}},
		"one does not count":   {3, []sdk.SegmentDetail{behind}, []string{"down to 2 of 3\n", "n3 (behind)"}},
		"nobody knows":         {1, []sdk.SegmentDetail{silent}, []string{"not counted: 1 segment whose leader did not answer\n", "no_answer"}},
	} {
		topic := fakeTopic("t", 1)
		topic.Copies = c.copies
		topic.Ranges = []sdk.RangeDetail{{ID: 1, State: base.StateActive, Segments: c.segments}}
		client := &fakeClient{admin: &fakeAdmin{topics: map[string]sdk.TopicDetail{"t": topic}}}
		out, _, err := run(t, client, "", true, nil, "topic", "describe", "t")
		if err != nil {
			t.Fatal(name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
	}
}

func TestTopicListSaysWhichSizesLackSomething(t *testing.T) {
	topic := fakeTopic("t", 1)
	topic.Summary.Partial = true
	client := &fakeClient{admin: &fakeAdmin{topics: map[string]sdk.TopicDetail{"t": topic}}}
	if _, errs, err := run(t, client, "", true, nil, "topic", "list"); err != nil || !strings.Contains(errs, "the size of 1 topic lacks") {
		t.Errorf("%v %q", err, errs)
	}
}
