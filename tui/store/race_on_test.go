//go:build race

package store_test

const (
	raceFactor = 20
	soak       = false
)
