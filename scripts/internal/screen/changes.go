package screen

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/sim/procs"
	"github.com/eastguard/eastguard/sdk"
)

// Change is something that happened in a cluster, and how long after that it was on the screen.
type Change struct {
	What string
	Late time.Duration
}

// Changes seals a segment of a cluster of three that runs, and kills a node. What comes of it stands in the list of events
// with the time at which the cluster knew.
func Changes(program string, c *procs.Cluster) (seen []Change, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	active, err := newSegment(ctx, client, "seen")
	if err != nil {
		return nil, err
	}
	s, err := Start(200, 60, program, "-s", c.Nodes[0].Client, "--view", "events")
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	if _, _, err := s.Await("live 3/3 .*", patience); err != nil {
		return nil, err
	}
	sealed, err := s.during(func() error {
		_, err := client.Admin().SealSegment(ctx, sdk.SealSegment{Segment: active})
		return err
	}, change{"a seal", "SEAL .* seen/"}, change{"a roll", "ROLL .* seen/"})
	if err != nil {
		return nil, err
	}
	killed, err := s.during(c.Nodes[2].Kill, change{"a suspicion", "SWIM .* → suspect"}, change{"a death", "SWIM .* → dead"})
	return append(sealed, killed...), err
}

// newSegment makes a topic, and tells its active segment.
func newSegment(ctx context.Context, client *sdk.Client, topic string) (sdk.SegmentID, error) {
	config := sdk.TopicConfig{ReplicationFactor: 3}
	if _, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: topic, Config: config}); err != nil {
		return 0, err
	}
	d, err := client.Admin().DescribeTopic(ctx, topic)
	if err != nil {
		return 0, err
	}
	for _, r := range d.Ranges {
		for _, seg := range r.Segments {
			if seg.State.String() == "active" {
				return seg.ID, nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no active segment", topic)
}

// change is what is waited for: what it is, and its line in the list of events.
type change struct{ what, line string }

// during does something and waits for what comes of it.
func (s *Screen) during(do func() error, changes ...change) (seen []Change, err error) {
	type answer struct {
		i    int
		late time.Duration
		err  error
	}
	answers := make(chan answer, len(changes))
	for i, c := range changes {
		go func() {
			line, at, err := s.Await(c.line, patience)
			if err == nil {
				var happened time.Time
				happened, err = timeOf(line, at)
				answers <- answer{i, at.Sub(happened), err}
				return
			}
			answers <- answer{i, 0, err}
		}()
	}
	err = do()
	seen = make([]Change, len(changes))
	for range changes {
		a := <-answers
		seen[a.i] = Change{changes[a.i].what, a.late}
		err = errors.Join(err, a.err)
	}
	return seen, err
}

var clock = regexp.MustCompile(`\d\d:\d\d:\d\d\.\d\d\d`)

// timeOf is the time that a line of the events begins with, which is that of a moment ago.
func timeOf(line string, now time.Time) (time.Time, error) {
	now = now.UTC()
	at, err := time.Parse("2006-01-02 15:04:05.000", now.Format("2006-01-02 ")+clock.FindString(line))
	if err != nil {
		return at, fmt.Errorf("no time in %q: %w", strings.TrimSpace(line), err)
	}
	if at.Sub(now) > 12*time.Hour { // it was before midnight
		at = at.AddDate(0, 0, -1)
	}
	return at, nil
}
