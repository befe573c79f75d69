//go:build !race

// What is measured here is a program without the race detector, whatever this one is built with: once is enough.

package screen

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/procs"
)

// build makes a program of this module.
func build(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("go", "build", "-o", file, "github.com/eastguard/eastguard/cmd/"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// TestBudget holds eg-top to what it may take with 60 nodes and 10,000 ranges on 200 by 60 cells. Processor time is let be
// three times as much, for machines that do much else; the rest is as it must be. docs/PERFORMANCE.md has the figures.
func TestBudget(t *testing.T) {
	const each = 6 * time.Second
	recording := filepath.Join(t.TempDir(), "recording.jsonl")
	require.NoError(t, Record(recording, Large(Length(each))))
	f, err := Measure(build(t, "eg-top"), recording, each)
	require.NoError(t, err)
	t.Logf("of a core: updating %.2f %%, paused %.2f %%, idle %.2f %%; %.0f bytes an update; %.1f MB; key to screen p99 %v",
		100*f.Updating, 100*f.Paused, 100*f.Idle, f.Update, float64(f.Memory)/(1<<20), f.Key)
	const factor = 3
	require.LessOrEqual(t, f.Updating, factor*0.05)
	require.LessOrEqual(t, f.Paused, factor*0.015)
	require.LessOrEqual(t, f.Idle, factor*0.015)
	require.LessOrEqual(t, f.Update, 1024.0)
	require.Zero(t, f.PausedBytes)
	require.LessOrEqual(t, f.Memory, 64<<20)
	require.LessOrEqual(t, f.Key, 10*time.Second)
}

// TestMemory has everything happen at once until all that is kept is full. That what is in use stays within its bounds is
// proved without a screen (TestStorm of tui/store); here half as much again is let pass, for a machine that is too busy to
// collect in time.
func TestMemory(t *testing.T) {
	now, most, err := Play(build(t, "eg-top"), t.TempDir(), Storm(20*time.Second), 1)
	require.NoError(t, err)
	t.Logf("%.1f MB, at most %.1f MB", float64(now)/(1<<20), float64(most)/(1<<20))
	require.LessOrEqual(t, most, 96<<20)
}

// TestChanges sees what happens in three real brokers: on a machine that does nothing else half a second after the cluster
// knows of it (scripts/bench.sh -only top), on this one in some time. That the program itself takes no longer is proved in
// virtual time (TestALiveCluster of tui/feed).
func TestChanges(t *testing.T) {
	broker, top := build(t, "eastguard"), build(t, "eg-top")
	c, err := procs.New(procs.Options{Dir: t.TempDir(), Command: func(args ...string) *exec.Cmd { return exec.Command(broker, args...) }}, 3)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.ColdStart(2 * time.Minute)
	require.NoError(t, err)
	seen, err := Changes(top, c)
	require.NoError(t, err)
	require.Len(t, seen, 4)
	for _, s := range seen {
		t.Logf("%s is on the screen after %v", s.What, s.Late)
		require.GreaterOrEqual(t, s.Late, -time.Millisecond, "%s: before it happened", s.What)
		require.LessOrEqual(t, s.Late, 10*time.Second, s.What)
	}
}
