package base

// CompareBools orders false before true, for cmp.Or and the sort functions.
func CompareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
