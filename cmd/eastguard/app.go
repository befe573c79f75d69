package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/term"
)

// The exit codes, beside 0. 74 is EX_IOERR of sysexits.h.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitStorage = 74
)

// app is the process as a value: everything it touches comes in here, so that tests run it as a function.
type app struct {
	args, env      []string
	stdout, stderr io.Writer
	colour         bool // of log lines
	readFile       func(string) ([]byte, error)
	interfaces     func() ([]net.Addr, error)
	signals        <-chan os.Signal
	newBroker      brokerFactory
}

// exitError carries the exit code of an error that is not a usage error.
type exitError struct {
	code int
	err  error // nil when all has been said already
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

// run executes the command line and returns the exit code.
func (a *app) run() int {
	root := a.rootCommand()
	root.SetArgs(append([]string{}, a.args...)) // never nil, which cobra takes for those of the process
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code, err = exit.code, exit.err
	}
	if err != nil {
		fmt.Fprintln(a.stderr, oneLine(err))
	}
	return code
}

// oneLine is what a person sees of an error: what is wrong and how to mend it.
func oneLine(err error) string {
	text := "eastguard: " + err.Error()
	var e *base.Error
	if errors.As(err, &e) {
		text += "; hint: " + e.HintText()
	}
	return term.Escape(strings.Join(strings.Fields(text), " "))
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "eastguard [flags]",
		Short: "Run an EastGuard broker",
		Long: `Run an EastGuard broker until SIGTERM or SIGINT.

Each setting has a flag below, a name in the environment (--client-port is EASTGUARD_CLIENT_PORT or CLIENT_PORT)
and a key in YAML (client_port, in -c FILE or ./eastguard.yaml). The command line wins over the environment, the
environment over the file, the file over the default.

Exit codes: 0 stopped gracefully, 1 could not start or stop, 2 wrong command line or configuration,
74 stable storage failed.`,
		Example: `  eastguard
  eastguard --host 127.0.0.1 --data-dir /var/lib/eastguard/data --meta-dir /var/lib/eastguard/meta
  eastguard config print -o json`,
		Version:       version(),
		Args:          unexpected,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.runBroker(cmd.Flags()) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", err) })
	root.PersistentFlags().SortFlags = false
	root.Flags().SortFlags = false
	config.AddFlags(root.PersistentFlags())
	root.AddCommand(a.configCommand(), a.versionCommand())
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  unexpected,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// unexpected refuses arguments, which cobra would pass over in silence.
func unexpected(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "", "unknown command %q", args[0]).WithHint("did you mean %s %s?", cmd.CommandPath(), near[0])
	}
	return usage("unexpected argument %q", args[0])
}

func usage(format string, args ...any) error {
	return base.Errorf(base.CodeInvalidArgument, "", format, args...).WithHint("eastguard --help lists commands and flags")
}
