//go:build race

package store

// thin leaves out so many of the cases that differ in a number only: the race detector is slow, and sees the same code.
const thin = 7
