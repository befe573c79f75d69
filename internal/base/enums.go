package base

import "fmt"

// Cause says why a segment ended (or a range changed). It is part of the replicated command.
type Cause uint8

// The causes; append-only, they are stored.
const (
	CauseNone Cause = iota
	CauseDataPressure
	CauseAge
	CauseIdle
	CauseReplicaFailure
	CauseLeaderFailure
	CauseRecovery
	CauseSplit
	CauseMerge
	CauseOperator
	CauseDrain
)

var causeNames = [...]string{
	"", "DATA_PRESSURE", "AGE", "IDLE", "REPLICA_FAILURE", "LEADER_FAILURE", "RECOVERY", "SPLIT", "MERGE", "OPERATOR", "DRAIN",
}

// String prints the documented upper-case name; CauseNone is empty.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("CAUSE_%d", uint8(c))
}

// State is the life of a range or segment.
type State uint8

// Ranges and segments are written while active and never change once sealed.
const (
	StateActive State = iota + 1
	StateSealed
	StateDeleting
)

// String prints active, sealed or deleting.
func (s State) String() string {
	switch s {
	case StateActive:
		return "active"
	case StateSealed:
		return "sealed"
	case StateDeleting:
		return "deleting"
	}
	return fmt.Sprintf("state_%d", uint8(s))
}
