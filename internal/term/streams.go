package term

import (
	"bytes"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// DefaultWidth is the width assumed where stdout is not a terminal.
const DefaultWidth = 80

// IOStreams is the three standard streams and what was decided about them at start. Everything that prints
// takes it as an argument; nothing else asks whether a file is a terminal.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	inTTY, outTTY, errTTY bool
	outColor, errColor    bool
	dumb                  bool // the terminal cannot move its cursor
	ascii                 bool
	size                  func() (cols, rows int)
}

// System is the process's own streams, with colour and glyphs decided from the environment.
func System(getenv func(string) string) *IOStreams {
	s := &IOStreams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		inTTY:  xterm.IsTerminal(int(os.Stdin.Fd())),
		outTTY: xterm.IsTerminal(int(os.Stdout.Fd())),
		errTTY: xterm.IsTerminal(int(os.Stderr.Fd())),
		size: func() (int, int) {
			cols, rows, err := xterm.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0, 0
			}
			return cols, rows
		},
	}
	s.Decide(ColorAuto, false, getenv)
	return s
}

// Test is three buffers that are no terminals, for tests; see [IOStreams.SetTTY].
func Test() (s *IOStreams, in, out, errs *bytes.Buffer) {
	in, out, errs = new(bytes.Buffer), new(bytes.Buffer), new(bytes.Buffer)
	return &IOStreams{In: in, Out: out, Err: errs}, in, out, errs
}

// SetTTY overrides what the streams are taken for.
func (s *IOStreams) SetTTY(in, out, err bool) { s.inTTY, s.outTTY, s.errTTY = in, out, err }

// SetSize overrides the terminal's size.
func (s *IOStreams) SetSize(cols, rows int) {
	s.size = func() (int, int) { return cols, rows }
}

// Decide settles colour, glyphs and repainting from the flags and the environment. It is called once a command,
// before anything is printed.
func (s *IOStreams) Decide(mode ColorMode, ascii bool, getenv func(string) string) {
	s.outColor = mode.On(s.outTTY, getenv)
	s.errColor = mode.On(s.errTTY, getenv)
	s.dumb = getenv("TERM") == "dumb"
	s.ascii = ascii || !utf8Locale(getenv)
}

// IsInTTY reports whether stdin is a terminal.
func (s *IOStreams) IsInTTY() bool { return s.inTTY }

// IsOutTTY reports whether stdout is a terminal.
func (s *IOStreams) IsOutTTY() bool { return s.outTTY }

// IsErrTTY reports whether stderr is a terminal.
func (s *IOStreams) IsErrTTY() bool { return s.errTTY }

// RepaintsOut reports whether what is on stdout can be written over: it is a terminal, and none that only appends.
func (s *IOStreams) RepaintsOut() bool { return s.outTTY && !s.dumb }

// RepaintsErr is RepaintsOut for stderr.
func (s *IOStreams) RepaintsErr() bool { return s.errTTY && !s.dumb }

// ASCII reports whether only ASCII glyphs may be drawn.
func (s *IOStreams) ASCII() bool { return s.ascii }

// Size is the terminal's size, or DefaultWidth by 24 where there is none. It is asked for each time, because
// the user may resize the window.
func (s *IOStreams) Size() (cols, rows int) {
	if s.size != nil {
		if cols, rows = s.size(); cols > 0 && rows > 0 {
			return cols, rows
		}
	}
	return DefaultWidth, 24
}

// OutStyle colours text for stdout, or leaves it alone.
func (s *IOStreams) OutStyle() Style { return Style{on: s.outColor} }

// ErrStyle colours text for stderr, or leaves it alone.
func (s *IOStreams) ErrStyle() Style { return Style{on: s.errColor} }

// WithOut returns a copy that writes stdout to w, which is no terminal: how a prompt line redirects to a file.
func (s *IOStreams) WithOut(w io.Writer) *IOStreams {
	c := *s
	c.Out, c.outTTY, c.outColor = w, false, false
	return &c
}

// utf8Locale follows setlocale(3): LC_ALL, then LC_CTYPE, then LANG. Where none is set (containers, mostly) a
// terminal of this century is assumed.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}
