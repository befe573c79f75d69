package coord

import "time"

// wishes are the active segments that should end for the sake of their replicas: too few, gone, or on a node that is to
// be emptied. Their leaders are asked to, so many a second.
type wishes struct {
	stale bool // nodes or segments have changed since they were looked at
}

// retreat is why a node's segments should go elsewhere.
type retreat uint8

func (l *loop) wish(time.Time) {}
