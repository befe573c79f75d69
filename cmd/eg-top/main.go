// Command eg-top shows a cluster on one screen, live. Its options and settings are those of eg-cli top (package cli);
// what it shows is in tui. This is the only place that ends the process.
package main

import (
	"context"
	"os"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/app"
)

// release is set when a release is built: -ldflags "-X main.release=1.2.3".
var release = "0.1.0-dev"

func main() {
	if term.RunKeeper() {
		return
	}
	deps := cli.Deps{IO: term.System(os.Getenv), Getenv: os.Getenv, Version: release, Top: top}
	os.Exit(cli.MainTop(context.Background(), deps, os.Args[1:]))
}

// top hands the options on; the two types have the same fields, or this does not compile.
func top(ctx context.Context, io *term.IOStreams, t cli.Top) error {
	return app.Run(ctx, app.Options(t), io)
}
