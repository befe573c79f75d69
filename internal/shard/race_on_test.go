//go:build race

package shard

const underRace = true
