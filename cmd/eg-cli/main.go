// Command eg-cli talks to EastGuard clusters: one command, a prompt, or a batch. Everything is in package cli; this
// is the only place that ends the process.
package main

import (
	"context"
	"os"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/internal/term"
)

// version is set by the linker: -X main.version=…
var version = "dev"

func main() {
	deps := cli.Deps{IO: term.System(os.Getenv), Getenv: os.Getenv, Version: version}
	os.Exit(cli.Main(context.Background(), deps, os.Args[1:]))
}
