package server

import "fmt"

// counted is a number and what it counts, in words that agree with it.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
