package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Gap is a time in which a producer of a topic got no ack though it waited for one.
type Gap struct {
	Topic string
	At    time.Duration // since the run began
	Took  time.Duration
	Cause string // what went wrong then
}

// longer is from when on a wait for an ack is a gap.
const longer = 250 * time.Millisecond

// lingers is how long after its end a fault may still be the cause of a gap: what it broke is being put right.
const lingers = 5 * time.Second

// gaps notes gaps and what went wrong when.
type gaps struct {
	mu     sync.Mutex
	began  time.Time
	list   []Gap
	errors map[string]int
	faults []span
}

// span is the time of one fault.
type span struct {
	what     string
	from, to time.Time // to is zero while it lasts
}

// see notes the time between two acks of one producer.
func (g *gaps) see(topic string, from, to time.Time) {
	if to.Sub(from) < longer {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = slices.DeleteFunc(g.list, func(old Gap) bool { // the writers of a topic wait together: one gap
		began, ended := g.began.Add(old.At), g.began.Add(old.At+old.Took)
		if old.Topic != topic || !began.Before(to) || !ended.After(from) {
			return false
		}
		if began.Before(from) {
			from = began
		}
		if ended.After(to) {
			to = ended
		}
		return true
	})
	g.list = append(g.list, Gap{Topic: topic, At: from.Sub(g.began), Took: to.Sub(from), Cause: g.cause(from, to)})
}

// cause lists what went wrong during a time, or shortly before.
func (g *gaps) cause(from, to time.Time) string {
	var causes []string
	for _, f := range g.faults {
		if f.from.Before(to) && (f.to.IsZero() || f.to.Add(lingers).After(from)) && !slices.Contains(causes, f.what) {
			causes = append(causes, f.what)
		}
	}
	if len(causes) == 0 {
		return "nothing that was done here"
	}
	return strings.Join(causes, ", ")
}

// fault notes that something goes wrong; the function it returns notes that it is over.
func (g *gaps) fault(what string) (over func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := len(g.faults)
	g.faults = append(g.faults, span{what: what, from: time.Now()})
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.faults[i].to = time.Now()
	}
}

// failed notes why a record was not acked.
func (g *gaps) failed(topic string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errors[fmt.Sprintf("%s: %v", topic, err)]++
}
