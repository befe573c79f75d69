package pledge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func newCore(t *testing.T, i int, p Plan, held Pledge) *Core {
	c, err := New(founderAt(i, 0), p, held)
	require.NoError(t, err)
	return c
}

func askOf(c *Core) Ask { return *c.Tick().Ask }

func TestPlans(t *testing.T) {
	for _, tc := range []struct {
		plan Plan
		says string
	}{
		{plan("bc", 2), "lacks this node's own address a"},
		{plan("abc", 4), "bootstrap_expect is 4, and join_seed_nodes names 3 nodes with this one: a, b, c"},
		{plan("abcd", 2), "not more than half of the 4 nodes named"},
		{Plan{List: []string{"b", "a", "b"}, Expect: 3}, "names 2 nodes"},
	} {
		_, err := New(founderAt(0, 0), tc.plan, Pledge{})
		require.ErrorContains(t, err, tc.says)
	}
}

// Every refusal says why, and who holds the pledge.
func TestRefusals(t *testing.T) {
	minter := newCore(t, 0, plan("abc", 2), Pledge{})
	elsewhere := Pledge{Minter: Founder{Node: "nz", Disk: base.DiskID{9}, Addr: "z"}, Founders: []string{"b", "z"}}
	joined := newCore(t, 1, plan("abc", 2), Pledge{})
	joined.MintedOrJoined(base.ClusterID{7})
	same := newCore(t, 0, plan("abc", 2), Pledge{})
	for _, tc := range []struct {
		name string
		of   *Core
		ask  Ask
		says string
	}{
		{"another list", newCore(t, 1, plan("bc", 2), Pledge{}), askOf(minter), "node nb is configured for 2 founders out of b, c, the minter na for 2 out of a, b, c"},
		{"another number", newCore(t, 1, plan("abc", 3), Pledge{}), askOf(minter), "for 3 founders out of a, b, c"},
		{"not the lowest", newCore(t, 2, plan("abc", 3), Pledge{}), Ask{Minter: founderAt(1, 0), List: []string{"a", "b", "c"}, Expect: 3}, "a is the lowest address of the list"},
		{"no founder", newCore(t, 2, plan("abc", 2), Pledge{}), askOf(minter), "node nc is none of the founders a, b"},
		{"held by another", newCore(t, 1, plan("abc", 2), elsewhere), askOf(minter), "has pledged to node nz at z, disk 09000000-"},
		{"a cluster is known", joined, askOf(minter), "belongs to cluster 07000000-"},
		{"the same address", same, askOf(minter), "has the address a too"},
	} {
		step := tc.of.OnAsk(tc.ask)
		require.Contains(t, step.Answer.Refusal, tc.says, tc.name)
		require.Nil(t, step.Write, tc.name)
		require.False(t, step.Mint)
		minter.OnAnswer(*step.Answer)
	}
}

// A minter whose configuration was mended gets the pledge anew: it is the same minter, and has not minted.
func TestSameMinterAnotherPlan(t *testing.T) {
	before := Pledge{Minter: founderAt(0, 0), Founders: []string{"a", "b"}}
	b := newCore(t, 1, plan("abc", 3), before)
	step := b.OnAsk(askOf(newCore(t, 0, plan("abc", 3), Pledge{})))
	require.Empty(t, step.Answer.Refusal)
	require.Equal(t, []string{"a", "b", "c"}, step.Write.Founders)
	require.Equal(t, *step.Write, step.Answer.Pledge)
	require.Nil(t, b.OnAsk(askOf(newCore(t, 0, plan("abc", 3), Pledge{}))).Write, "asked again it has nothing to write")
}

func TestWaiting(t *testing.T) {
	a, b := newCore(t, 0, plan("abc", 2), Pledge{}), newCore(t, 1, plan("abc", 2), Pledge{})
	require.Equal(t, "no pledge yet of b", a.Waiting())
	require.Contains(t, b.Waiting(), "the node at a founds the cluster when it has the pledges of a, b")
	answer := b.OnAsk(askOf(a)).Answer
	require.Contains(t, b.Waiting(), "this node has pledged to node na at a")
	require.True(t, a.OnAnswer(*answer).Mint)
	a.MintedOrJoined(base.ClusterID{7})
	require.Empty(t, a.Waiting())
	require.Equal(t, base.ClusterID{7}, b.OnAnswer(a.Who()).Join)
	require.Equal(t, base.ClusterID{7}, b.Tick().Join)

	lost := newCore(t, 0, plan("abc", 2), Pledge{Minter: founderAt(2, 0), Founders: []string{"b", "c"}})
	require.Nil(t, lost.Tick().Ask, "who has pledged to another does not mint")
	require.Contains(t, lost.Waiting(), "with empty directories")
}
