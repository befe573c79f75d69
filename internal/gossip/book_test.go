package gossip

import (
	"encoding/hex"
	"testing"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	id, l, err := parseName(life{12, 3}.name("a.b-c_9"))
	require.NoError(t, err)
	require.Equal(t, base.NodeID("a.b-c_9"), id)
	require.Equal(t, life{12, 3}, l)
	for _, bad := range []string{"", "n1", "n1#", "n1#1", "n1#1.", "#1.0", "n1#01.0", "n1#1.-1", "n1#1.0#2.0", "n 1#1.0", "n1#1.4294967296", "n1#+1.0"} {
		_, _, err := parseName(bad)
		require.ErrorIs(t, err, base.CodeInvalidArgument, bad)
	}
}

// said is an alive message of n2 from a process that is told apart by its letter; the elder have lower ones.
func said(boot uint64, rename uint32, who byte) word {
	return word{id: "n2", life: life{boot, rename}, process: process{boot, int64(who), base.UUID{who}}, cluster: theCluster, address: "at-" + string(who)}
}

func testBook() *book {
	return newBook(theCluster, &Self{Node: "n1", Boot: 5, StartedMs: 50, Instance: base.UUID{50}})
}

func TestBook(t *testing.T) {
	type step struct {
		say  word
		bury *life
		veto string
		tell string // to whom
	}
	bury := func(boot uint64, rename uint32) step { return step{bury: &life{boot, rename}} }
	for name, steps := range map[string][]step{
		"heard again":                 {{say: said(1, 0, 'a')}, {say: said(1, 0, 'a')}},
		"dead is final":               {{say: said(1, 0, 'a')}, bury(1, 0), {say: said(1, 0, 'a'), veto: "buried", tell: "at-a"}},
		"and for what came before":    {{say: said(4, 2, 'a')}, bury(4, 2), {say: said(4, 1, 'a'), veto: "buried", tell: "at-a"}, {say: said(3, 9, 'c'), veto: "buried", tell: "at-c"}},
		"a rename lives":              {{say: said(1, 0, 'a')}, bury(1, 0), {say: said(1, 1, 'a')}},
		"a restart lives":             {{say: said(1, 3, 'a')}, bury(1, 3), {say: said(2, 0, 'b')}},
		"a restart before the burial": {{say: said(1, 0, 'a')}, {say: said(2, 0, 'b')}, bury(1, 0), {say: said(2, 0, 'b')}},
		"an old life's echo":          {{say: said(2, 0, 'b')}, {say: said(1, 0, 'a'), veto: "node id taken", tell: "at-a"}},
		"an old name's echo":          {{say: said(1, 1, 'a')}, {say: said(1, 0, 'a'), veto: "superseded"}},
		"a younger clone":             {{say: said(1, 0, 'a')}, {say: said(1, 0, 'b'), veto: "node id taken", tell: "at-b"}},
		"an elder clone, same name":   {{say: said(1, 0, 'b')}, {say: said(1, 0, 'a'), veto: "name in use", tell: "at-b"}, bury(1, 0), {say: said(1, 1, 'a')}},
		"an elder clone, renamed":     {{say: said(1, 0, 'b')}, {say: said(1, 1, 'a'), tell: "at-b"}, {say: said(1, 0, 'b'), veto: "node id taken", tell: "at-b"}},
		"a clone of the dead":         {{say: said(1, 0, 'a')}, bury(1, 0), {say: said(1, 1, 'b')}},
		"a foreign cluster":           {{say: word{id: "n2", life: life{1, 0}, cluster: base.ClusterID{1}}, veto: "foreign cluster"}},
	} {
		b := testBook()
		for i, s := range steps {
			if s.bury != nil {
				b.bury("n2", *s.bury)
				continue
			}
			v := b.admit(s.say)
			require.Equal(t, s.veto, v.veto, "%s, step %d", name, i)
			tell := ""
			for _, n := range []*notice{v.buried, v.taken} {
				if n != nil {
					tell = n.to
				}
			}
			require.Equal(t, s.tell, tell, "%s, step %d", name, i)
		}
	}
}

func TestBookOnItself(t *testing.T) {
	me := func(boot uint64, started int64, instance byte, rename uint32) word {
		return word{id: "n1", life: life{boot, rename}, process: process{boot, started, base.UUID{instance}}, cluster: theCluster, address: "there"}
	}
	for name, c := range map[string]struct {
		w     word
		veto  string
		tell  bool
		fatal bool
	}{
		"ours":                 {me(5, 50, 50, 0), "", false, false},
		"an earlier name":      {me(5, 50, 50, 9), "an earlier name of this process", false, false},
		"the start before":     {me(4, 10, 4, 0), "node id taken", true, false},
		"a later start":        {me(6, 60, 6, 0), "node id taken", false, true},
		"a younger clone":      {me(5, 51, 1, 0), "node id taken", true, false},
		"an elder clone":       {me(5, 49, 99, 0), "node id taken", false, true},
		"a twin, by instance":  {me(5, 50, 51, 0), "node id taken", true, false},
		"a twin, the other it": {me(5, 50, 49, 0), "node id taken", false, true},
	} {
		v := testBook().admit(c.w)
		require.Equal(t, c.veto, v.veto, name)
		require.Equal(t, c.fatal, v.fatal, name)
		require.Equal(t, c.tell, v.taken != nil && v.taken.to == "there", name)
	}
}

func TestBookRenames(t *testing.T) {
	b := testBook()
	for name, c := range map[string]struct {
		n            notice
		next         life
		ok, outdated bool
	}{
		"our name":          {notice{ID: "n1", Life: life{5, 0}, Grave: life{5, 0}}, life{5, 1}, true, false},
		"graves above it":   {notice{ID: "n1", Life: life{5, 0}, Grave: life{5, 7}}, life{5, 8}, true, false},
		"a later boot":      {notice{ID: "n1", Life: life{5, 0}, Grave: life{6, 0}}, life{}, false, true},
		"a former name":     {notice{ID: "n1", Life: life{4, 0}, Grave: life{4, 0}}, life{}, false, false},
		"somebody else":     {notice{ID: "n2", Life: life{5, 0}, Grave: life{5, 0}}, life{}, false, false},
		"an earlier grave?": {notice{ID: "n1", Life: life{5, 0}, Grave: life{4, 0}}, life{5, 1}, true, false},
	} {
		next, ok, outdated := b.rename(&c.n)
		require.Equal(t, c.next, next, name)
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.outdated, outdated, name)
	}
}

// Whatever is heard in whatever order: a buried life is never admitted again, and of two processes exactly one is told
// to go by everybody.
func TestBookNeverRaisesTheDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := testBook()
		var grave life
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			l := life{rapid.Uint64Range(1, 3).Draw(t, "boot"), rapid.Uint32Range(0, 2).Draw(t, "rename")}
			if rapid.Bool().Draw(t, "bury") && b.pages["n2"] != nil {
				b.bury("n2", l)
				if l.compare(grave) > 0 {
					grave = l
				}
				continue
			}
			v := b.admit(said(l.Boot, l.Rename, rapid.ByteRange('a', 'c').Draw(t, "who")))
			if v.veto == "" && l.compare(grave) <= 0 {
				t.Fatalf("%v admitted, grave %v", l, grave)
			}
		}
		p, q := process{rapid.Uint64Range(1, 2).Draw(t, "b1"), rapid.Int64Range(1, 2).Draw(t, "s1"), base.UUID{1}},
			process{rapid.Uint64Range(1, 2).Draw(t, "b2"), rapid.Int64Range(1, 2).Draw(t, "s2"), base.UUID{2}}
		if p.outranks(q) == q.outranks(p) {
			t.Fatalf("%v and %v", p, q)
		}
	})
}

func TestClaimsMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claim {
			return Claim{
				Shard:  base.ShardID{Root: rapid.Uint16Range(0, 2).Draw(t, "shard")},
				Leader: rapid.SampledFrom([]base.NodeID{"n1", "n2"}).Draw(t, "leader"), Term: rapid.Uint64Range(1, 4).Draw(t, "term"),
				Generation: rapid.Uint64Range(0, 1).Draw(t, "generation"),
			}
		}), 1, 12).Draw(t, "claims")
		one, other := newClaims(func() int { return 3 }), newClaims(func() int { return 3 })
		for i := range list {
			one.merge(list[i])
			other.merge(list[len(list)-1-i])
		}
		third := newClaims(func() int { return 3 })
		third.mergeAll(one.encode())
		if string(one.encode()) != string(other.encode()) || string(one.encode()) != string(third.encode()) {
			t.Fatalf("%v, %v, %v", one.all(), other.all(), third.all())
		}
	})
	c := newClaims(func() int { return 3 })
	require.False(t, c.merge(Claim{Leader: "not a name", Term: 1}))
	require.False(t, c.mergeAll([]byte{0xff, 1, 2}))
}

// A shard that was rebuilt goes on from the log that was found: those who were left behind may have counted more terms.
func TestARebuiltShardOutbidsItsPast(t *testing.T) {
	c := newClaims(func() int { return 3 })
	require.True(t, c.merge(Claim{Leader: "n1", Term: 9}))
	require.True(t, c.merge(Claim{Leader: "n2", Term: 5, Generation: 1}))
	require.False(t, c.merge(Claim{Leader: "n1", Term: 12}))
	require.True(t, c.merge(Claim{Leader: "n3", Term: 6, Generation: 1}))
	require.Equal(t, []Claim{{Leader: "n3", Term: 6, Generation: 1}}, c.all())
}

// Claims lie in the messages of nodes of different versions: one that knows no generation reads the rest.
func TestGoldenClaim(t *testing.T) {
	shard := base.ShardID{Root: 3}
	for want, claim := range map[string]Claim{
		"a301a1010302626e310305":     {Shard: shard, Leader: "n1", Term: 5},
		"a401a1010302626e3103050402": {Shard: shard, Leader: "n1", Term: 5, Generation: 2},
	} {
		b := must(encoding.Marshal(claim))
		require.Equal(t, want, hex.EncodeToString(b))
		var back Claim
		require.NoError(t, decoding.Unmarshal(b, &back))
		require.Equal(t, claim, back)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(encodeMessage(kindClaim, Claim{Leader: "n1", Term: 3}))
	f.Add((&notice{ID: "n1", Life: life{1, 2}, Grave: life{1, 2}}).encode("10.0.0.1:1"))
	f.Add((&notice{ID: "n1", Instance: base.UUID{1}, Winner: base.UUID{2}, Boot: 3}).encode(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		decodeNotice(b)
		_, _ = decodeMeta(b)
		_, _ = decodePushPull(b)
		newClaims(func() int { return 1 }).mergeAll(b)
	})
}
