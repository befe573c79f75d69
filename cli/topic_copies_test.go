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
	waiting := segment("n1")
	waiting.Waits = "1 of 3 nodes can take a segment, 2 are needed\x1b[2J"
	behind := segment("n1", "n2", "n3")
	behind.Replicas[2].State, behind.Copies = "behind", 2
	for name, c := range map[string]struct {
		copies   int
		segments []sdk.SegmentDetail
		want     []string
	}{
		"as many as asked for": {3, []sdk.SegmentDetail{segment("n1", "n2", "n3")}, []string{"factor 3\n"}},
		"fewer than asked for": {3, []sdk.SegmentDetail{segment("n1", "n2")}, []string{"factor 3; 1 segment with fewer copies, down to 2 of 3\n", "  active 2/3  "}},
		"one does not count":   {3, []sdk.SegmentDetail{behind}, []string{"down to 2 of 3\n", "n3 (behind)"}},
		"no nodes for more":    {1, []sdk.SegmentDetail{waiting}, []string{"\nr1 takes no records: 1 of 3 nodes can take a segment, 2 are needed\\x1b[2J\n", "  waiting  "}},
		"nobody knows":         {1, []sdk.SegmentDetail{silent}, []string{"not counted: 1 segment of which no replica answered\n", "no_answer"}},
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

// A topic that begins with fewer copies than it asks for says so, whatever the output is.
func TestTopicCreateSaysHowManyCopiesThereAre(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("old"), fit: 3}
	old := admin.topics["old"]
	old.Ranges = placedOn(3)
	admin.topics["old"] = old
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"table":     {[]string{"create-topic", "a", "5", "--allow-under-replicated"}, "\n3 of 5 copies: 3 nodes can take one; the others are made as nodes join\n"},
		"wide":      {[]string{"create-topic", "b", "5", "--allow-under-replicated", "-o", "wide"}, "\n3 of 5 copies: "},
		"json":      {[]string{"create-topic", "c", "5", "--allow-under-replicated", "-o", "json"}, `"copies": 3,`},
		"a dry run": {[]string{"create-topic", "d", "5", "--allow-under-replicated", "--dry-run"}, "\n3 of 5 copies: "},
		"altered":   {[]string{"topic", "alter", "old", "replication_factor=5", "-o", "json"}, `"copies": 3,`},
	} {
		out, errs, err := run(t, &fakeClient{admin: admin}, "", true, nil, c.args...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v %q\n%s", name, err, errs, out)
		}
	}
	out, _, err := run(t, &fakeClient{admin: admin}, "", true, nil, "create-topic", "e", "3")
	if err != nil || strings.Contains(out, "copies") {
		t.Errorf("enough: %v\n%s", err, out)
	}
	_, errs, err := run(t, &fakeClient{admin: admin}, "", true, nil, "topic", "alter", "old", "replication_factor=5")
	if err != nil || !strings.Contains(errs, "3 of 5 copies so far") {
		t.Errorf("altered: %v %q", err, errs)
	}
}

// What was given up is shown for as long as the topic lives, also when its segments have gone.
func TestTopicDescribeShowsLosses(t *testing.T) {
	topic := fakeTopic("t", 1)
	client := &fakeClient{admin: &fakeAdmin{topics: map[string]sdk.TopicDetail{"t": topic}}}
	describe := func(args ...string) string {
		client.admin.topics["t"] = topic
		out, _, err := run(t, client, "", true, nil, append([]string{"topic", "describe", "t"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := describe(); strings.Contains(out, "may be gone") {
		t.Errorf("a loss where there was none:\n%s", out)
	}
	topic.Losses, topic.Lost = 33, []sdk.SegmentLoss{
		{Range: 2, Segment: 40, End: 1200, TimeMs: 1},
		{Range: 1, Segment: 41, End: 77, TimeMs: 2, Forced: &sdk.ForcedSeal{Reason: "rack burnt\x1b[2J", Silent: []base.NodeID{"n2", "n3"}}},
	}
	out := describe()
	for _, want := range []string{"33 seals above whose ends acked records may be gone", "r2     s40      1200", "forced", "restarted", "rack burnt", "n2 n3"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b[2J") {
		t.Error("an operator's words are not escaped")
	}
	if out := describe("--jq", ".losses, .loss_list[1].silent[0]", "-o", "json"); !strings.Contains(out, "33") || !strings.Contains(out, "n2") {
		t.Errorf("for programs: %s", out)
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
