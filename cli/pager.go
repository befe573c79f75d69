package cli

import (
	"bytes"
	"os"
	"os/exec"
)

// paged runs a command whose output may be taller than the screen. On a terminal, when it is and a pager is
// configured, the pager shows it. Without EG_PAGER or PAGER nothing is paged: the terminal scrolls.
func (a *app) paged(run func() error) error {
	if !a.io.IsOutTTY() || !a.io.IsInTTY() || a.set.pager == "" || a.flags.noPager || a.machine() {
		return run()
	}
	var b bytes.Buffer
	streams := a.io
	own := *streams
	own.Out = &b
	a.io = &own
	err := run()
	a.io = streams
	if _, rows := streams.Size(); bytes.Count(b.Bytes(), []byte("\n")) < rows {
		_, werr := streams.Out.Write(b.Bytes())
		return firstError(err, werr)
	}
	cmd := exec.Command("sh", "-c", a.set.pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &b, os.Stdout, os.Stderr
	if perr := cmd.Run(); perr != nil {
		_, werr := streams.Out.Write(b.Bytes())
		return firstError(err, werr)
	}
	return err
}
