//go:build race

package cli_test

// scriptsUnder are the scripts that run in a build with the race detector, which makes each of hundreds of
// processes slow to start: those where goroutines of the client do the work.
var scriptsUnder = []string{"transcript", "bench"}
