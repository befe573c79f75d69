package app

import (
	"context"
	"fmt"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// Options are how the dashboard runs, with every setting resolved.
type Options struct {
	Seeds        []string
	Context      term.Context   // the one in use; without a name, none is
	Contexts     []term.Context // to switch to
	AllowActions bool           // actions that change the cluster may be asked for
	Version      string
	Getenv       func(string) string
	// Exec runs another command of eg-cli against a cluster, without asking anything, and returns what it printed. What it
	// starts runs under guard, as with sdk.WithGuard.
	Exec func(ctx context.Context, at term.Context, words []string, guard func(run func())) (text string, err error)

	View     string
	Refresh  time.Duration // between two changes of the screen
	Filter   string
	Once     bool
	Format   term.Format
	Count    int           // documents to print; 0: one, or no end
	Duration time.Duration // after which it ends; 0: never
	Width    int           // 0: as the terminal is
	Height   int

	NoMouse          bool
	NoAnimation      bool
	Record           string // a file
	Replay           string // a file
	Speed            float64
	ExitOnDisconnect bool
	GlyphsChosen     bool // somebody has said whether to draw with ASCII alone: fonts of the locale decide nothing
	FormatChosen     bool // by -o, which leaves no screen; what usually holds for commands does not
}

func failure(code sdk.Code, format string, args ...any) *sdk.Error {
	return &sdk.Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}
