package meta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestRecoveriesAreRememberedForEver(t *testing.T) {
	s := New(base.ShardID{Root: 3}, 4)
	index := uint64(0)
	record := func(r RecordRecovery) (Result, []Event) {
		index++
		return s.Apply(index, Command{TimeMs: int64(index), RecordRecovery: &r})
	}
	first := RecordRecovery{Generation: 1, Node: "n2", Server: id('m', 2), Term: 4, Index: 90, Lost: []base.UUID{id('m', 1), id('m', 3)}}
	r, events := record(first)
	require.NoError(t, r.Err("record"))
	require.Equal(t, EventShardRecovered, events[0].Type)
	require.Equal(t, "generation 1, from the log of node n2 up to entry 90 of term 4, without 2 voters", events[0].Detail)

	r, events = record(first)
	require.NoError(t, r.Err("record"))
	require.Empty(t, events, "said again")
	r, _ = record(RecordRecovery{Generation: 1, Node: "n1", Server: id('m', 1)})
	require.ErrorIs(t, r.Err("record"), base.CodePreconditionFailed)
	r, _ = record(RecordRecovery{Node: "n1", Server: id('m', 1)})
	require.ErrorIs(t, r.Err("record"), base.CodeInvalidArgument)
	r, _ = record(RecordRecovery{Generation: 5, Node: "n1", Server: id('m', 1)})
	require.NoError(t, r.Err("record"))

	require.NoError(t, s.Check())
	back := throughSnapshot(t, s)
	require.Equal(t, []Recovery{
		{RecordRecovery: first, TimeMs: 1}, {RecordRecovery: RecordRecovery{Generation: 5, Node: "n1", Server: id('m', 1)}, TimeMs: 5},
	}, back.Recoveries())
}
