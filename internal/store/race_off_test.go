//go:build !race

package store

const thin = 1
