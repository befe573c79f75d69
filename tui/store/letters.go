package store

// letterOf is a cause in one letter.
func letterOf(cause string) byte {
	switch cause {
	case "DATA_PRESSURE":
		return 'P'
	case "AGE":
		return 'A'
	case "IDLE":
		return 'I'
	case "REPLICA_FAILURE", "LEADER_FAILURE":
		return 'F'
	case "RECOVERY":
		return 'R'
	case "SPLIT":
		return 'S'
	case "MERGE":
		return 'M'
	case "OPERATOR":
		return 'O'
	case "DRAIN":
		return 'D'
	}
	return '?'
}
