//go:build !race

package cli_test

// scriptsUnder is empty: without the race detector all scripts run.
var scriptsUnder []string
