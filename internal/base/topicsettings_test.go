package base_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

func TestDurationsReadAndPrint(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  time.Duration
		print string
	}{
		{"0", 0, "0"},
		{"7d", 7 * 24 * time.Hour, "7d"},
		{"2w", 14 * 24 * time.Hour, "14d"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"90m", 90 * time.Minute, "1h30m"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"1d12h30m15s1ms", 36*time.Hour + 30*time.Minute + 15*time.Second + time.Millisecond, "1d12h30m15s1ms"},
	} {
		got, err := base.ParseDuration(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.print, base.FormatDuration(got), c.text)
	}
	for _, text := range []string{"", "7", "d", "-1d", "1.5h", "7 d", "1y", "999999999999w", "106751d1000000000000h", "7D"} {
		_, err := base.ParseDuration(text)
		require.ErrorIs(t, err, base.CodeInvalidArgument, text)
	}
}

func TestSizesReadAndPrint(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  int64
		print string
	}{
		{"0", 0, "0"},
		{"1000", 1000, "1000"},
		{"1KiB", 1024, "1KiB"},
		{"1.5GiB", 3 << 29, "1536MiB"},
		{"64 MiB", 64 << 20, "64MiB"},
		{"20MB", 20e6, "20000000"},
		{"512B", 512, "512"},
		{"2TiB", 2 << 40, "2TiB"},
	} {
		got, err := base.ParseSize(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.print, base.FormatSize(got), c.text)
	}
	for _, text := range []string{"", "x", "-1", "1K", "1.5", "1..5GiB", "1e3KiB", "NaNGiB", "InfGiB", "9223372036854775807KiB", "99999999999.9TiB", "0x10"} {
		_, err := base.ParseSize(text)
		require.ErrorIs(t, err, base.CodeInvalidArgument, text)
	}
}

func TestFormatsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Min(0).Draw(t, "size")
		got, err := base.ParseSize(base.FormatSize(size))
		if err != nil || got != size {
			t.Fatalf("%d printed %q read %d, %v", size, base.FormatSize(size), got, err)
		}
		ms := rapid.Int64Range(0, int64(100*365*24*time.Hour/time.Millisecond)).Draw(t, "ms")
		d, err := base.ParseDuration(base.FormatDuration(time.Duration(ms) * time.Millisecond))
		if err != nil || d != time.Duration(ms)*time.Millisecond {
			t.Fatalf("%d ms printed %q read %v, %v", ms, base.FormatDuration(time.Duration(ms)*time.Millisecond), d, err)
		}
	})
}

func TestEverySettingTakesItsExampleAndPrintsIt(t *testing.T) {
	for _, s := range base.TopicSettings() {
		c := base.TopicConfig{ReplicationFactor: 3}
		require.NoError(t, c.Set(s.Key, s.Example), s.Key)
		require.NoError(t, c.Validate(), s.Key)
		printed, ok := c.Get(s.Key)
		require.True(t, ok)

		again := base.TopicConfig{ReplicationFactor: 3}
		require.NoError(t, again.Set(s.Key, printed))
		require.Equal(t, c, again, s.Key)
		require.NotEmpty(t, s.Help)
	}
}

func TestUnsetReturnsToTheDefault(t *testing.T) {
	c := base.TopicConfig{ReplicationFactor: 1}
	require.NoError(t, c.Set("retention", "7d"))
	require.NoError(t, c.Set("label.team", "blue"))
	require.NoError(t, c.Unset("retention"))
	require.NoError(t, c.Unset("label.team"))
	require.Equal(t, base.TopicConfig{ReplicationFactor: 1}, c)
	for _, s := range base.TopicSettings() {
		require.NoError(t, c.Unset(s.Key), s.Key)
	}
	require.NoError(t, c.Validate())
}

func TestSettingALabelLeavesCopiesAlone(t *testing.T) {
	a := base.TopicConfig{Labels: map[string]string{"team": "blue"}}
	b := a
	require.NoError(t, b.Set("label.team", "red"))
	require.NoError(t, b.Unset("label.team"))
	require.Equal(t, "blue", a.Labels["team"])
}

func TestAlterIsAllOrNothing(t *testing.T) {
	c := base.TopicConfig{ReplicationFactor: 1}
	for name, alter := range map[string]func(c *base.TopicConfig) error{
		"unknown key":    func(c *base.TopicConfig) error { return c.Alter(map[string]string{"colour": "red"}, nil) },
		"bad value":      func(c *base.TopicConfig) error { return c.Alter(map[string]string{"retention": "soon"}, nil) },
		"fixed at birth": func(c *base.TopicConfig) error { return c.Alter(map[string]string{"strategy": "fixed"}, nil) },
		"unset at birth": func(c *base.TopicConfig) error { return c.Alter(nil, []string{"strategy"}) },
		"set and unset": func(c *base.TopicConfig) error {
			return c.Alter(map[string]string{"retention": "1d"}, []string{"retention"})
		},
		"do not fit": func(c *base.TopicConfig) error {
			return c.Alter(map[string]string{"retention": "1d", "min_replicas": "2"}, nil)
		},
		"too small":        func(c *base.TopicConfig) error { return c.Alter(map[string]string{"segment_bytes": "1"}, nil) },
		"label of no name": func(c *base.TopicConfig) error { return c.Alter(map[string]string{"label.": "x"}, nil) },
		"escape in label":  func(c *base.TopicConfig) error { return c.Alter(map[string]string{"label.a": "\x1b[2J"}, nil) },
	} {
		got := c
		require.ErrorIs(t, alter(&got), base.CodeInvalidArgument, name)
		require.Equal(t, c, got, name)
	}
	require.NoError(t, c.Alter(map[string]string{"retention": "7d", "label.team": "blue"}, []string{"retention_bytes"}))
	require.Equal(t, []string{
		"replication_factor", "min_replicas", "strategy", "durability", "on_total_loss", "retention", "retention_bytes",
		"segment_bytes", "segment_age", "compression", "spread_by", "split_rate", "label.team",
	}, c.Keys())
	require.Equal(t, "7d", c.Settings()["retention"])
}

func TestNarrowsRetention(t *testing.T) {
	keep := base.TopicConfig{Retention: time.Hour}
	require.True(t, keep.NarrowsRetention(base.TopicConfig{Retention: time.Minute}))
	require.True(t, base.TopicConfig{}.NarrowsRetention(keep))
	require.False(t, keep.NarrowsRetention(base.TopicConfig{}))
	require.False(t, keep.NarrowsRetention(keep))
	require.True(t, keep.NarrowsRetention(base.TopicConfig{Retention: time.Hour, RetentionBytes: 1}))
}
