package base

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUUIDRoundTrip(t *testing.T) {
	u, err := NewUUID(bytes.NewReader(bytes.Repeat([]byte{0xff}, 16)))
	require.NoError(t, err)
	require.Equal(t, "ffffffff-ffff-4fff-bfff-ffffffffffff", u.String(), "version and variant bits are set, the rest is kept")
	back, err := ParseUUID(u.String())
	require.NoError(t, err)
	require.Equal(t, u, back)

	_, err = NewUUID(bytes.NewReader(nil))
	require.ErrorIs(t, err, io.EOF)
	for _, bad := range []string{"", "ffffffff", "gfffffff-ffff-4fff-bfff-ffffffffffff", "ffffffff-ffff-4fff-bfff-fffffffffffff"} {
		_, err := ParseUUID(bad)
		require.ErrorIs(t, err, CodeInvalidArgument, bad)
	}
}

func TestIDsPrintAndParse(t *testing.T) {
	r, err := ParseRangeID("r17")
	require.NoError(t, err)
	require.Equal(t, RangeID(17), r)
	require.Equal(t, "r17", r.String())
	s, err := ParseSegmentID("905")
	require.NoError(t, err)
	require.Equal(t, "s905", s.String())
	for _, bad := range []string{"", "r", "r0", "0", "s1", "r4294967296", "r-1"} {
		_, err := ParseRangeID(bad)
		require.ErrorIs(t, err, CodeInvalidArgument, bad)
	}
	for _, bad := range []string{"", "s", "s0", "r1", "s18446744073709551616"} {
		_, err := ParseSegmentID(bad)
		require.ErrorIs(t, err, CodeInvalidArgument, bad)
	}
}

func TestShardIDPrintAndParse(t *testing.T) {
	for text, want := range map[string]ShardID{
		"0":      {},
		"12":     {Root: 12},
		"12.0":   {Root: 12, PathLen: 1},
		"12.1.0": {Root: 12, Path: 0b10, PathLen: 2},
	} {
		got, err := ParseShardID(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "x", "12.", "12.2", "-1", "65536", "1" + strings.Repeat(".0", 17)} {
		_, err := ParseShardID(bad)
		require.ErrorIs(t, err, CodeInvalidArgument, bad)
	}
}

// Every hash lies in exactly one shard, also when some shards are split deeper than others.
func TestShardsTileTheHashSpace(t *testing.T) {
	shards := []ShardID{{Root: 0}, {Root: 1, PathLen: 1}, {Root: 1, Path: 0b10, PathLen: 2}, {Root: 1, Path: 0b11, PathLen: 2}, {Root: 2}, {Root: 3}}
	for _, hash := range []uint64{0, 1, 1<<62 - 1, 1 << 62, 0x5fff_ffff_ffff_ffff, 0x6000_0000_0000_0000, 0x7000_0000_0000_0000, 1 << 63, 1<<64 - 1} {
		owners := 0
		for _, s := range shards {
			if s.Contains(hash, 4) {
				owners++
			}
		}
		require.Equal(t, 1, owners, "hash %#x", hash)
	}
	require.True(t, ShardID{Root: 1, Path: 0b11, PathLen: 2}.Contains(0x7000_0000_0000_0000, 4))
	require.True(t, RootShard.Contains(1<<64-1, 1), "a cluster of one shard holds everything")
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "orders", "A.b_c-9", strings.Repeat("x", MaxTopicName), "_x", "..."} {
		require.NoError(t, CheckTopicName(good), good)
	}
	for _, bad := range []string{"", ".", "..", "__offsets", "a b", "ä", "a/b", "a\x00", strings.Repeat("x", MaxTopicName+1)} {
		require.ErrorIs(t, CheckTopicName(bad), CodeInvalidTopicName, bad)
	}
	require.NoError(t, NodeID("n1").Check())
	for _, bad := range []NodeID{"", "n 1", "n#1", NodeID(strings.Repeat("n", 65))} {
		require.ErrorIs(t, bad.Check(), CodeInvalidArgument)
	}
}

func TestErrorsKeepCodeOutcomeAndCause(t *testing.T) {
	cause := errors.New("disk on fire")
	e := Errorf(CodeDiskFull, "append", "write: %w", cause)
	require.Equal(t, "append: write: disk on fire", e.Error())
	require.ErrorIs(t, e, cause)
	require.ErrorIs(t, e, CodeDiskFull)
	require.NotErrorIs(t, e, CodeBusy)

	outer := Wrap(CodeInternal, "produce", fmt.Errorf("batch 3: %w", e.WithOutcome(Unknown).WithHint("buy a disk")))
	require.Equal(t, CodeDiskFull, outer.Code, "a wrapped *Error keeps its code")
	require.Equal(t, Unknown, outer.Outcome)
	require.Equal(t, "buy a disk", outer.HintText())
	require.Equal(t, "produce: batch 3: append: write: disk on fire", outer.Error())
	require.ErrorIs(t, outer, cause)

	require.Equal(t, NotApplied, e.Outcome, "WithOutcome works on a copy")
	require.Equal(t, CodeInternal, CodeOf(cause))
	require.Equal(t, Unknown, OutcomeOf(cause), "a foreign error says nothing of the outcome")
	require.Equal(t, CodeTopicExists.Info().Summary, (&Error{Code: CodeTopicExists}).Error())
}

// The numbers and names are on the wire and in scripts: this table may only grow.
func TestCodeTable(t *testing.T) {
	names := map[string]Code{}
	for code, info := range Codes() {
		require.Regexp(t, `^[A-Z][A-Z_]*$`, info.Name)
		require.NotEmpty(t, info.Summary, info.Name)
		require.NotEmpty(t, info.Hint, info.Name)
		require.Equal(t, code == CodeOK, info.Exit == 0, info.Name)
		require.NotContains(t, names, info.Name)
		names[info.Name] = code
	}
	for name, number := range map[string]Code{"OK": 0, "INTERNAL": 1, "TIMEOUT": 4, "TOPIC_NOT_FOUND": 20, "TOPIC_EXISTS": 21, "NOT_LEADER": 40, "RANGE_MOVED": 46, "CORRUPT_DATA": 55, "PARTIAL": 72} {
		require.Equal(t, number, names[name], name)
	}
	require.Equal(t, "CODE_999", Code(999).String(), "a newer peer's code has a name too")
}

func TestEnumsPrint(t *testing.T) {
	require.Equal(t, "DATA_PRESSURE", CauseDataPressure.String())
	require.Equal(t, "DRAIN", CauseDrain.String())
	require.Equal(t, "CAUSE_200", Cause(200).String())
	require.Equal(t, "sealed", StateSealed.String())
	require.Equal(t, "state_9", State(9).String())
}

func TestCloneSharesNoMap(t *testing.T) {
	a := TopicConfig{Labels: map[string]string{"team": "core"}}
	b := a.Clone()
	b.Labels["team"] = "edge"
	require.Equal(t, "core", a.Labels["team"])
}

func TestShardsInOrder(t *testing.T) {
	order := []ShardID{{}, {Root: 1}, {Root: 1, PathLen: 1}, {Root: 1, PathLen: 1, Path: 1}, {Root: 1, PathLen: 2}, {Root: 2}}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, cmp.Compare(i, j), a.Compare(b), "%s and %s", a, b)
		}
	}
}
