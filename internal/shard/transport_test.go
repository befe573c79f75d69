package shard

import (
	"context"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// answers counts what became of requests to an inbox.
type answers struct {
	mu    sync.Mutex
	codes map[base.Code]int
}

func (a *answers) delivery(size int) *delivery {
	return &delivery{size: size, done: func(_ any, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		code := base.CodeOK
		if err != nil {
			code = base.CodeOf(err)
		}
		a.codes[code]++
	}}
}

func TestAnInboxTurnsAwayWhatItCannotHold(t *testing.T) {
	for _, c := range []struct {
		size, held int
	}{
		{100, inboxRequests},
		{inboxBytes / 4, 4},
		{2 * inboxBytes, 1}, // one that is too large by itself is taken when nothing waits
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newInbox(base.RootShard)
			a := &answers{codes: make(map[base.Code]int)}
			b.put(a.delivery(0)) // taken up by the pump; raft never takes it
			synctest.Wait()
			for range 200 {
				b.put(a.delivery(c.size))
			}
			require.Equal(t, map[base.Code]int{base.CodeBusy: 200 - c.held}, a.codes)
			b.close()
			b.close()
			b.put(a.delivery(1))
			require.Equal(t, map[base.Code]int{base.CodeBusy: 200 - c.held, base.CodeShuttingDown: c.held + 2}, a.codes)
		})
	}
}

// TestHeartbeatsShareMessages: what idle groups say to one node goes together.
func TestHeartbeatsShareMessages(t *testing.T) {
	inPlant(t, 3, 32, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		before := p.nodes["n1"].peers.Stats().FramesOut
		time.Sleep(20 * time.Second)
		sent := p.nodes["n1"].peers.Stats().FramesOut - before
		t.Logf("%d messages a second for 32 groups that are led here", sent/20)
		// 32 groups have two followers each, and say something every 600 ms on average; then there is what tells the
		// commit, every 3 s.
		require.Less(t, sent, int64(20*60))
		p.awaitLeaders(0)
	})
}

// TestManyLargeEntriesGoInSeveralMessages: a batch of raft may be larger than a frame.
func TestManyLargeEntriesGoInSeveralMessages(t *testing.T) {
	inPlant(t, 3, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		p.kill("n3", nil)
		g := other(p.nodes["n1"].host, base.RootShard)
		for range 2*entriesLimit/maxCommand + 1 {
			require.NoError(t, g.raft.Apply(make([]byte, maxCommand-1), 0).Error())
		}
		p.start("n3")
		p.converge()
	})
}

func TestEntriesOfAMessageAreBounded(t *testing.T) {
	var logs []*raft.Log
	for i := range 10 {
		logs = append(logs, &raft.Log{Index: uint64(i + 7), Term: 3, Type: raft.LogCommand, Data: make([]byte, 1000), AppendedAt: time.Unix(1, 5).UTC()})
	}
	for limit, want := range map[int]int{1: 1, 2000: 1, 2200: 2, 1 << 20: 10} {
		b, n := encodeEntries(logs, limit)
		require.Equal(t, want, n, "limit %d", limit)
		back, err := decodeEntries(b)
		require.NoError(t, err)
		require.Equal(t, logs[:n], back)
	}
	b, n := encodeEntries(nil, 1)
	require.Empty(t, b)
	require.Zero(t, n)
}

// TestAClosingHostAnswersEverybody: callers without a deadline, on every node, while the nodes go one by one.
func TestAClosingHostAnswersEverybody(t *testing.T) {
	inPlant(t, 3, 4, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		var hosts []*Host
		for _, name := range p.names {
			hosts = append(hosts, p.nodes[name].host)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for w := range 24 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					h := hosts[(w+i)%3]
					if create(context.Background(), h, 1000*w+i%1000) != nil {
						time.Sleep(time.Millisecond)
					}
					name, _ := createTopic(i)
					_ = h.View(context.Background(), h.ShardOf(name), nothing)
				}
			})
		}
		for _, name := range p.names {
			time.Sleep(50 * time.Millisecond)
			p.stop(name)
		}
		close(stop)
		wg.Wait()
	})
}

// TestADroppedReplicaAnswersEverybody: the same for one group of a host that goes on.
func TestADroppedReplicaAnswersEverybody(t *testing.T) {
	inPlant(t, 1, 1, func(t *testing.T, p *plant) {
		h := p.nodes["n1"].host
		var wg sync.WaitGroup
		busy := make(chan struct{}, 500)
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := create(context.Background(), h, 100_000*w+i)
					select {
					case busy <- struct{}{}:
					default:
					}
					if base.CodeOf(err) == base.CodeShardNotFound {
						return
					}
					if err != nil {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		for range 500 {
			<-busy
		}
		require.NoError(t, h.drop(t.Context(), hosted{Index: 1000}))
		wg.Wait()
	})
}

// messages are one of each kind, with every field set.
func messages() map[string]any {
	e := envelope{Shard: base.ShardID{Root: 12, Path: 1, PathLen: 1}, Generation: 2, From: base.UUID{1}, To: base.UUID{2}, Term: 7}
	v := verdict{Newer: 3, Term: 8}
	return map[string]any{
		"append":            &appendMessage{Envelope: e, PrevIndex: 5, PrevTerm: 6, Commit: 4, Entries: []byte{0}},
		"append-answer":     &appendAnswer{Verdict: v, LastLog: 9, Success: true, AtOnce: true},
		"vote":              &voteMessage{Envelope: e, LastIndex: 5, LastTerm: 6, Forced: true},
		"vote-answer":       &voteAnswer{Verdict: v, Granted: true},
		"timeout":           &timeoutMessage{Envelope: e},
		"timeout-answer":    &timeoutAnswer{Verdict: v},
		"heartbeats":        &heartbeatsMessage{Beats: []envelope{e}, Still: true},
		"heartbeats-answer": &heartbeatsAnswer{Answers: []heartbeatAnswer{{Answer: appendAnswer{Verdict: v}, Code: base.CodeBusy}}},
		"chunk": &chunkMessage{
			Envelope: e, Stream: 1, Offset: 2, Data: []byte{3}, Size: 4, LastIndex: 5, LastTerm: 6, Configuration: []byte{7}, ConfigurationIndex: 8, Version: 1,
		},
		"chunk-answer": &chunkAnswer{Verdict: v, Have: 9, Success: true},
		"host":         &hostMessage{Cluster: base.UUID{1}, Shard: e.Shard, Server: base.UUID{2}, Generation: 3, Index: 4, Shards: 32},
		"watch":        &watchMessage{Questions: []question{{Shard: e.Shard, Generation: 1, Leader: "n1", Term: 2, LastTerm: 3, LastIndex: 4}}},
		"watch-answer": &watchAnswer{Opinions: []opinion{{Hosted: true, Lost: true, LastTerm: 3, LastIndex: 4}}},
	}
}

// TestMessagesKeepTheirEncoding: nodes of two versions talk to each other during an upgrade. EASTGUARD_REWRITE=1 writes
// the file anew.
func TestMessagesKeepTheirEncoding(t *testing.T) {
	const file = "testdata/messages.txt"
	all := messages()
	var text strings.Builder
	for _, name := range sortedKeys(all) {
		text.WriteString(name + " " + hex.EncodeToString(encode(all[name])) + "\n")
	}
	if os.Getenv("EASTGUARD_REWRITE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
	for name, m := range all {
		back := reflect.New(reflect.TypeOf(m).Elem())
		require.NoError(t, decode(encode(m), back.Interface()), name)
		require.Equal(t, m, back.Interface(), name)
	}
}

func FuzzMessages(f *testing.F) {
	for _, m := range messages() {
		f.Add(encode(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range messages() {
			_ = decode(b, reflect.New(reflect.TypeOf(m).Elem()).Interface())
		}
		_, _ = decodeEntries(b)
	})
}
