package planner

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// AbsenceStep is the longest time that one look adds to an absence. Who looks every second and then not for minutes
// was stopped itself, and knows nothing of that time.
const AbsenceStep = 5 * time.Second

// Absences is how long the root's leader has found nodes gone. It begins with nothing whenever a leader does: a change
// of leader can only make a node's end later. The zero value is ready; it is not safe for concurrent use.
type Absences struct {
	gone   map[base.NodeID]time.Duration
	looked time.Time
}

// Standing is told what the root's table and the view say now, and returns the nodes that have been gone for outAfter
// and should be out: dead, left, or never met since this leader began. known are the nodes of the table.
func (a *Absences) Standing(now time.Time, known []base.NodeID, view topology.View, outAfter time.Duration) []base.NodeID {
	step := time.Duration(0)
	if !a.looked.IsZero() {
		step = min(max(now.Sub(a.looked), 0), AbsenceStep)
	}
	a.looked = now
	gone := make(map[base.NodeID]time.Duration)
	var out []base.NodeID
	for _, id := range known {
		n, met := view.Node(id)
		if met && (n.Liveness == topology.Alive || n.Liveness == topology.Suspect) {
			continue
		}
		before, counted := a.gone[id]
		if counted {
			before += step
		}
		gone[id] = before
		if n.Standing != topology.Out && before >= outAfter {
			out = append(out, id)
		}
	}
	a.gone = gone
	return out
}

// Gone is for how long a node has been found gone; 0 when it was not.
func (a *Absences) Gone(id base.NodeID) time.Duration { return a.gone[id] }
