package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// slowlyGone is a cluster whose brokers take until then to remove a deleted topic, and of which one cannot be reached
// at first.
type slowlyGone struct {
	fakeAdmin
	until time.Time
	asked int
}

func (a *slowlyGone) TopicRemoved(ctx context.Context, name string, id sdk.TopicID) (bool, error) {
	if a.asked++; a.asked == 1 {
		return false, errorf(sdk.CodeUnreachable, "no broker answers")
	}
	return id == a.topics[name].Summary.ID && !time.Now().Before(a.until), nil
}

func TestTopicDeleteWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		takes, timeout, over time.Duration
		exit                 int
		says                 string
	}{
		"until the data is gone": {takes: 5 * time.Second, timeout: time.Minute, over: 7 * time.Second},
		"as long as it may":      {takes: time.Hour, timeout: time.Minute, over: time.Minute, exit: ExitNotMet, says: "not gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				admin := &slowlyGone{fakeAdmin: fakeAdmin{topics: topicsOf("t")}, until: began.Add(tt.takes)}
				streams, _, out, errs := term.Test()
				s := NewSession(Deps{IO: streams, Getenv: func(string) string { return "" }, Connect: func(Target) (Client, error) {
					return adminOnly{admin: admin}, nil
				}})
				err := s.execute(t.Context(), streams, []string{"topic", "delete", "t", "--yes", "--wait", "--timeout", tt.timeout.String()})
				if ExitCode(err) != tt.exit || !strings.Contains(errs.String(), tt.says) || !strings.Contains(out.String(), "deleted") {
					t.Errorf("%v\n%s%s", err, out, errs)
				}
				if err != nil && describe(err).Outcome != sdk.OutcomeApplied.String() {
					t.Error("the topic is deleted whatever is left of it")
				}
				if took := time.Since(began); took < min(tt.takes, tt.timeout) || took > tt.over {
					t.Errorf("took %s", took)
				}
				if most := 10 + int(tt.over/time.Second); admin.asked > most {
					t.Errorf("asked %d times in %s", admin.asked, tt.over)
				}
			})
		})
	}
}
