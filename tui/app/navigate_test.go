package app

import (
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// What ⏎ opens has the row that it was about selected, or nothing but what is about it.
func TestOpenLeadsToTheThing(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1, Length: 60 * time.Second}, 50*time.Second)
	found := make(map[page.ID]bool)
	b.press("8", "down")
	for range b.view.Events.Len() {
		s := page.Get(b.page).About(b.view, b.state())
		if s.Open != page.Events && !found[s.Open] {
			found[s.Open] = true
			b.press("enter")
			require.Equal(t, s.Open, b.page, s.Name)
			rows := page.Get(b.page).Rows(b.view, b.state())
			selected := b.state().Focus().Selected
			require.GreaterOrEqual(t, rows.Index(selected), 0, "%s leads to %q of %s", s.Name, selected, b.page)
			require.True(t, selected == s.Name || strings.HasSuffix(s.Name, selected) || s.Open == page.Segments, "%s leads to %s", s.Name, selected)
			b.press("esc")
			require.Equal(t, page.Events, b.page)
		}
		b.press("down")
	}
	require.True(t, found[page.Ring] && found[page.Shards] && found[page.Segments], "%v", found)

	for _, key := range []string{"3", "6"} {
		b.press(key, "down")
		s := page.Get(b.page).About(b.view, b.state())
		b.press("enter")
		require.Equal(t, page.Events, b.page, s.Title())
		require.Contains(t, b.state().Filter.Text, s.Name)
		b.press("esc", "esc")
	}
}

func TestAFilterForANameIsForItAlone(t *testing.T) {
	for name, c := range map[string]struct {
		yes, no []string
	}{
		"s90":      {[]string{"segment=s90 next=s91", "s90"}, []string{"s905", "ss90"}},
		"shard 12": {[]string{"LEADER shard 12 n1"}, []string{"shard 120", "shard 1"}},
		"a.b":      {[]string{"a.b/r1"}, []string{"axb", "a.bc"}},
		"-x-":      {[]string{"TOPIC -x- created"}, []string{"x"}},
	} {
		f := exactly(name)
		for _, text := range c.yes {
			require.True(t, f.Match(text), "%s in %s", name, text)
		}
		for _, text := range c.no {
			require.False(t, f.Match(text), "%s in %s", name, text)
		}
	}
}

// Whatever a page was narrowed to, esc widens it again, and so does its name behind a colon.
func TestEveryScopeHasAWayOut(t *testing.T) {
	run := func(b *bench, line string) { b.press(":"); b.write(line); b.press("enter") }
	for line, id := range map[string]page.ID{
		"logs warn": page.Logs, "events seal": page.Events, "segments orders": page.Segments, "segments /r1": page.Segments, "ranges orders": page.Ranges,
	} {
		b := newBench(t, Options{Width: 120, Height: 40})
		b.play(storetest.Options{Seed: 1}, 20*time.Second)
		run(b, line)
		require.Equal(t, id, b.page, line)
		require.NotZero(t, b.state().Scope, line)
		b.press("esc")
		require.Equal(t, page.Overview, b.page)
		require.Zero(t, b.states[id].Scope, "%s, and back", line)

		run(b, line)
		b.press("1", string(rune('0'+int(id))))
		require.NotZero(t, b.state().Scope, "%s is looked away from, not left", line)
		b.shows(t, "esc back")
		b.press("esc")
		require.Zero(t, b.state().Scope, line)

		run(b, line)
		run(b, strings.ToLower(id.String()))
		require.Zero(t, b.state().Scope, "all of %s", id)
	}
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	run(b, "logs WARN")
	require.Equal(t, "warn", b.state().Level)
	require.Equal(t, "warn", b.viewport().Logs.Level)
	b.shows(t, "warn and worse")
	run(b, "logs fsync")
	require.Empty(t, b.state().Level)
	require.Equal(t, "fsync", b.state().Filter.Text)
	b.press("2", "down", "e")
	require.NotEmpty(t, b.state().Node, "events of a node are those it tells and those about it")
}

// A command that is copied is run in another shell: it says which cluster it is for.
func TestACopiedCommandLeadsToThisCluster(t *testing.T) {
	prod := term.Context{Name: "prod", Seeds: []string{"p:1", "q:1"}}
	for want, o := range map[string]Options{
		"eg-cli topic describe a":                       {Seeds: []string{"127.0.0.1:2921"}},
		"eg-cli -s a:1,b:2 topic describe a":            {Seeds: []string{"a:1", "b:2"}},
		"eg-cli --context prod topic describe a":        {Seeds: prod.Seeds, Context: prod, Contexts: []term.Context{prod}},
		"eg-cli --context prod -s x:1 topic describe a": {Seeds: []string{"x:1"}, Context: prod, Contexts: []term.Context{prod}},
	} {
		b := newBench(t, o)
		require.Equal(t, want, b.elsewhereLine([]string{"topic", "describe", "a"}))
	}
	b := newBench(t, Options{Width: 120, Height: 40, Seeds: []string{"a:1"}, AllowActions: true})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("4", "down", "C")
	b.shows(t, "copied: eg-cli -s a:1 topic describe ")
	b.press("x", "C")
	b.shows(t, "copied: eg-cli -s a:1 topic ")
}

// The way back is bounded, and leads to the newest places.
func TestTheWayBackIsBounded(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	for range 3 * maxTrail {
		b.enter(page.Events, func(*page.State) {})
		b.enter(page.Topics, func(*page.State) {})
	}
	require.Len(t, b.trail, maxTrail)
	b.press("esc")
	require.Equal(t, page.Events, b.page)
}

// The past cannot be changed, and its actions say so.
func TestNothingIsDoneToThePast(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, AllowActions: true})
	b.play(storetest.Options{Seed: 1, Length: 60 * time.Second}, 50*time.Second)
	b.press("4", "down", ",", "x")
	b.shows(t, "this is the past: L goes back to now")
	b.press("d")
	require.Empty(t, b.ran)
}

// The exit code of one look: the verdict counts where there is one, else what is seen.
func TestUnhealthy(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for want, v := range map[string]*store.View{
		"":                           {Cluster: store.Cluster{Alive: 3, Shards: 4, Leaders: 4}},
		"2 nodes are dead":           {Cluster: store.Cluster{Alive: 1, Dead: 2}},
		"2 shards have no leader":    {Cluster: store.Cluster{Shards: 4, Leaders: 2}},
		"no broker can be reached":   {Cluster: store.Cluster{Link: store.Link{State: store.LinkLost}}},
		"the cluster is not healthy": {Health: store.Health{At: at, Worst: sdk.HealthFail}},
	} {
		require.Equal(t, want, unhealthy(v))
	}
	warned := &store.View{Health: store.Health{At: at, Worst: sdk.HealthWarn}, Cluster: store.Cluster{Dead: 1}}
	require.Empty(t, unhealthy(warned), "who was asked for a verdict knows more")
}

// A command that is copied is one command, of these words, in the shell that it is pasted into, whatever they hold.
func TestCopiedCommandsAreOfTheirWords(t *testing.T) {
	for _, words := range [][]string{
		{"topic", "describe", "orders"},
		{"group", "describe", "it's $HOME `id` \"x\" ; rm * \\ # !"},
		{"group", "describe", "", "größe", "日本"},
		{"group", "describe", "a\nid\x1b[201~\rid\t\x7f", "\u009b31m' \\", "bad \xff utf-8", "\u202egnp.exe"},
	} {
		line := commandLine(words)
		require.False(t, strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
		out, err := exec.Command("bash", "-c", "eg-cli() { printf '%s\\0' \"$@\"; }; "+line).Output()
		require.NoError(t, err)
		require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out))
	}
}
