package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/term"
)

// A terminal that cannot move its cursor shows escape sequences as rubbish: nothing is written over there.
func TestADumbTerminalIsNotRepainted(t *testing.T) {
	for _, name := range []string{"dumb", "xterm"} {
		synctest.Test(t, func(t *testing.T) {
			getenv := func(v string) string { return map[string]string{"TERM": name, "NO_COLOR": "1"}[v] }
			streams, _, out, errs := term.Test()
			streams.SetTTY(true, true, true)
			streams.Decide(term.ColorAuto, false, getenv) // as at the prompt
			s := NewSession(Deps{IO: streams, Getenv: getenv, Now: time.Now, Connect: func(Target) (Client, error) {
				return &fakeClient{admin: &fakeAdmin{topics: topicsOf("t")}}, nil
			}})
			if err := s.execute(context.Background(), streams, []string{"topic", "list", "-w=1s", "--timeout", "3s"}); err != nil {
				t.Error(err)
			}
			if err := s.meta(t.Context(), streams, "clear", nil); err != nil {
				t.Error(err)
			}
			p := (&app{Session: s, io: streams}).startProgress(func(time.Duration) string { return "under way" })
			time.Sleep(time.Second)
			p.stop()
			text := out.String() + errs.String() + overEcho(streams)
			if moves := strings.Contains(text, "\x1b") || strings.Contains(text, "\r"); moves != (name != "dumb") {
				t.Errorf("TERM=%s: %q", name, text)
			}
		})
	}
}
