package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func TestSegmentList(t *testing.T) {
	out, errs, exit, admin := onThree(t, nil, "segment list --topic t -r r1 --node n2 --state active")
	require.Equal(t, ExitOK, exit, errs)
	require.Equal(t, []sdk.ListSegments{{Topic: "t", Range: 1, Node: "n2", State: "active"}}, admin.listed)
	require.Equal(t, strings.Join([]string{
		"SEGMENT  TOPIC/RANGE  STATE       CAUSE  BASE  END  RECORDS     SIZE  REPLICAS  AGE",
		"s5       t/r1         active 2/3  -       200  250      100  2.0 KiB  n1 n2 n3  1h00m",
		"",
	}, "\n"), out)
	out, _, _, _ = onThree(t, nil, "segment list -o json")
	require.NoError(t, matchSchema("segment.list", out))
	var rows []segmentListRow
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Equal(t, "active", rows[1].State, "documents keep states and counts apart")
	require.Equal(t, "REPLICA_FAILURE", rows[0].Cause)
	require.EqualValues(t, 96, rows[0].GapMs)
	out, _, _, _ = onThree(t, nil, "segment list -o wide")
	require.Contains(t, out, "GAP-MS")

	for line, want := range map[string]int{
		"segment list -r r1":          ExitUsage,
		"segment list --state broken": ExitUsage,
		"segment list --topic tt":     ExitNotFound,
		"segments":                    ExitOK,
	} {
		_, errs, exit, _ = onThree(t, nil, line)
		require.Equal(t, want, exit, "%s: %s", line, errs)
	}
}

func TestSegmentDescribe(t *testing.T) {
	out, _, exit, _ := onThree(t, nil, "segment describe s5")
	require.Equal(t, ExitOK, exit)
	for _, want := range []string{"t/r1, shard 3", "200 to 250", "active 2/3", "2 whole of 3", "on stable storage of every replica", "n3: node n3 does not answer", "00000abc", "1.9 ms"} {
		require.Contains(t, out, want)
	}
	out, _, _, _ = onThree(t, nil, "segment describe 4 -o json")
	require.NoError(t, matchSchema("segment.describe", out))
	_, errs, exit, _ := onThree(t, nil, "segment describe s99")
	require.Equal(t, ExitNotFound, exit)
	require.Contains(t, errs, "segment list")
	_, _, exit, _ = onThree(t, nil, "segment describe five")
	require.Equal(t, ExitUsage, exit)
}

func TestSegmentSeal(t *testing.T) {
	_, _, exit, admin := onThree(t, nil, "segment seal s5")
	require.Equal(t, ExitUsage, exit, "without --yes somebody has to say yes")
	require.Empty(t, admin.sealed)
	out, _, exit, admin := onThree(t, nil, "segment seal s5 --dry-run --detailed-exitcode -o json")
	require.Equal(t, ExitNotMet, exit)
	require.NoError(t, matchSchema("segment.seal", out))
	require.Contains(t, out, `"boundary": null`)
	require.Empty(t, admin.sealed)
	out, _, exit, admin = onThree(t, nil, "segment seal s5 --dry-run")
	require.Equal(t, ExitOK, exit)
	require.Equal(t, "would seal s5 of t/r1, at 245 or above; the next segment opens on a set of nodes of its own\n", out)
	require.Empty(t, admin.sealed)
	out, _, exit, admin = onThree(t, nil, "segment seal s5 --yes --reason tidy")
	require.Equal(t, ExitOK, exit)
	require.Equal(t, "OLD  NEW  BOUNDARY  REPLICAS    GAP\ns5   s5        250  n2 n1 n4  12 ms\n", out)
	require.Equal(t, []sdk.SealSegment{{Segment: 5, Reason: "tidy"}}, admin.sealed)
	_, _, exit, _ = onThree(t, nil, "segment seal s4 --yes")
	require.Equal(t, ExitConflict, exit)
	_, _, exit, _ = onThree(t, nil, "segment seal s9 --yes")
	require.Equal(t, ExitNotFound, exit)
	_, errs, exit, _ := onThree(t, nil, "segment seal s5 --yes --wait -t 300ms")
	require.Equal(t, ExitNotMet, exit, errs)
	_, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.mended = 2 }, "segment seal s5 --yes --wait")
	require.Equal(t, ExitOK, exit)
}

func TestSegmentForceSeal(t *testing.T) {
	_, errs, exit, admin := onThree(t, nil, "segment force-seal s5 --yes")
	require.Equal(t, ExitUsage, exit)
	require.Contains(t, errs, "--accept-data-loss")
	require.Empty(t, admin.forced)
	out, _, exit, admin := onThree(t, nil, "segment force-seal s5 --dry-run")
	require.Equal(t, ExitOK, exit)
	require.Empty(t, admin.forced)
	require.NotContains(t, out, "OLD")
	for _, want := range []string{"would end s5 of t/r1 at 240, the longest copy that answers; ", "Copies that answered", "unknown: whether the copy on n1 is whole", "may be lost"} {
		require.Contains(t, out, want)
	}
	_, _, exit, _ = onThree(t, nil, "segment force-seal s5 --accept-data-loss")
	require.Equal(t, ExitUsage, exit, "somebody has to type the name")
	out, _, exit, admin = onThree(t, nil, "segment force-seal s5 --accept-data-loss --yes --reason fire -o json")
	require.Equal(t, ExitOK, exit)
	require.NoError(t, matchSchema("segment.seal", out))
	require.Equal(t, []sdk.ForceSealSegment{{Segment: 5, Reason: "fire", AcceptDataLoss: true}}, admin.forced)
}

// What a replica did not say is no figure, in text and in JSON, and a copy that is known to be damaged is not called unknown.
func TestCopiesThatSayLittle(t *testing.T) {
	silent := sdk.SegmentCopy{Replica: sdk.ReplicaDetail{Node: "n1", State: "no_answer"}}
	rows := copyRows([]sdk.SegmentCopy{silent})
	require.Nil(t, rows[0].DurableEnd)
	require.Nil(t, rows[0].Commit)
	require.Nil(t, rows[0].Bytes)
	require.Nil(t, rows[0].IndexEntries)
	out, _, exit, _ := onThree(t, nil, "segment force-seal s5 --dry-run")
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "unknown: whether the copy on n1 is whole")
	require.Contains(t, out, "damaged: the copy on n2; what it had from 10 on goes")
	require.NotContains(t, out, "0 B", "a fence tells no size of what is damaged")
}

func TestWaitSegment(t *testing.T) {
	_, _, exit, _ := onThree(t, nil, "wait segment s4 sealed")
	require.Equal(t, ExitOK, exit)
	out, _, exit, _ := onThree(t, nil, "wait segment s5 sealed -t 200ms")
	require.Equal(t, ExitNotMet, exit)
	require.Contains(t, out, "active, 2 of 3 copies")
	_, _, exit, _ = onThree(t, func(a *fakeAdmin) { a.mended = 3 }, "wait segment s5 replicated")
	require.Equal(t, ExitOK, exit)
	_, _, exit, _ = onThree(t, nil, "wait segment s9 sealed")
	require.Equal(t, ExitNotFound, exit)
	_, _, exit, _ = onThree(t, nil, "wait segment s5 happy")
	require.Equal(t, ExitUsage, exit)
}

func TestSegmentDump(t *testing.T) {
	dump := func(info SegmentDump, args ...string) (string, int) {
		streams, _, outBuf, _ := term.Test()
		s := NewSession(Deps{
			IO: streams, Getenv: func(string) string { return "" }, Now: func() time.Time { return testNow },
			DumpSegment: func(path string, records bool, each func(DumpedBatch) error) (SegmentDump, error) {
				info.Path = path
				b := DumpedBatch{Base: 0, End: 2, Bytes: 80, Codec: "none", Epoch: 1, TimestampMs: testNow.UnixMilli()}
				if records {
					b.Records = []sdk.Message{message(0, "k", "v"), message(1, "k", "w")}
				}
				return info, each(b)
			},
		})
		err := s.execute(t.Context(), streams, append([]string{"segment", "dump", "7-0.log"}, args...))
		return outBuf.String(), ExitCode(err)
	}
	whole := SegmentDump{Segment: 7, End: 2, Epoch: 1, Bytes: 80, Batches: 1, Records: 2, CRC: 0xabc, IndexEntries: 1}
	out, exit := dump(whole)
	require.Equal(t, ExitOK, exit)
	require.Contains(t, out, "80 B in 1 batch, 2 records")
	require.Contains(t, out, "nothing is damaged")
	for _, flags := range [][]string{nil, {"--batches"}, {"--records"}, {"--batches", "--records"}} {
		out, exit = dump(whole, append(flags, "-o", "json")...)
		require.Equal(t, ExitOK, exit)
		require.NoError(t, matchSchema("segment.dump", out))
	}
	require.Contains(t, out, `"value": "w"`)
	whole.Problems = []string{"the batch at 0 does not match its checksum"}
	out, exit = dump(whole)
	require.Equal(t, ExitIntegrity, exit)
	require.Contains(t, out, "damaged: the batch at 0")
	_, _, exit, _ = onThree(t, nil, "segment dump 7-0.log")
	require.NotEqual(t, ExitOK, exit, "built without a reader")
}

func TestPublishTrace(t *testing.T) {
	const ms = time.Millisecond
	trace := sdk.Trace{
		Route: 2 * ms, Linger: 1 * ms, Encode: ms / 2, Retried: 10 * ms, Send: ms, Commit: 4 * ms, Total: 19 * ms, Tries: 2, Records: 1, Bytes: 80,
		Leader: "n1", Taken: ms, LeaderFsync: 3 * ms, Followers: []sdk.FollowerTrace{{Node: "n2", Sent: ms, Acked: 4 * ms, Fsync: 2 * ms}},
	}
	publish := func(args ...string) (string, int) {
		client := &fakeClient{producer: &fakeProducer{trace: trace}}
		out, _, err := run(t, client, "", false, nil, append([]string{"publish", "t", "k", "v", "--trace"}, args...)...)
		return out, ExitCode(err)
	}
	out, exit := publish()
	require.Equal(t, ExitOK, exit)
	var stages []string
	for _, line := range strings.Split(out, "\n")[3:] {
		if f := strings.Fields(line); len(f) > 1 {
			stages = append(stages, f[0]+" "+f[1])
		}
	}
	require.Equal(t, []string{"route -", "linger -", "encode -", "retries -", "send -", "commit n1", "leader_fsync n1", "replicate n2", "follower_fsync n2", "total -"}, stages)
	out, _ = publish("-o", "jsonl")
	require.NoError(t, matchSchema("publish", out))
	var doc ackDocument
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.InDelta(t, 14.0, doc.Trace.Stages[5].AtMs, 0.01, "the way there is half of send")
	require.InDelta(t, 2.0, doc.Trace.Stages[6].TookMs, 0.01)
	_, _, err := run(t, &fakeClient{producer: &fakeProducer{}}, "", false, nil, "publish", "t", "--trace")
	require.Equal(t, ExitUsage, ExitCode(err))
}

func TestConsumeFrom(t *testing.T) {
	for from, want := range map[string]int{"nearest": ExitOK, "leader": ExitOK, "n2": ExitOK, "n9": ExitNotFound, "": ExitUsage} {
		client := &fakeClient{
			admin:    &fakeAdmin{topics: topicsOf("t"), fakeNodes: threeNodes()},
			consumer: &fakeConsumer{batches: [][]sdk.Message{{message(0, "k", "v")}}, err: errEnd},
		}
		_, errs, err := run(t, client, "", false, nil, "consume", "t", "earliest", "1", "--from", from)
		require.Equal(t, want, ExitCode(err), "%q: %s", from, errs)
	}
}

// A gap is time in which something waited. Two clients that saw one seal tell of one.
func TestBenchGaps(t *testing.T) {
	at := func(ms int) time.Time { return testNow.Add(time.Duration(ms) * time.Millisecond) }
	ack := func(seg sdk.SegmentID) sdk.Ack { return sdk.Ack{Position: sdk.Position{Range: 1}, Segment: seg} }
	g, other := newGaps(), newGaps()
	g.acked(ack(5), at(0), at(2))
	g.acked(ack(5), at(1000), at(1003)) // an idle second is none
	require.Equal(t, 3*time.Millisecond, g.longest)
	g.acked(ack(6), at(1010), at(1100))
	g.acked(ack(6), at(1011), at(1101))
	require.Equal(t, 90*time.Millisecond, g.longest)
	other.acked(ack(5), at(1000), at(1001))
	other.acked(ack(6), at(1002), at(1102))
	g.merge(&other)
	require.EqualValues(t, 1, g.count)
	rows := g.rows(map[sdk.SegmentID]string{5: "REPLICA_FAILURE"})
	require.Len(t, rows, 1)
	require.Equal(t, sealRow{Range: "r1", Old: "s5", New: "s6", Cause: "REPLICA_FAILURE", GapMs: 100, At: term.Time{Time: at(1102)}}, rows[0])

	many := newGaps()
	for i := range 5 * maxSeals {
		many.acked(ack(sdk.SegmentID(i+1)), at(10*i), at(10*i+i%7))
	}
	require.EqualValues(t, 5*maxSeals-1, many.count)
	require.LessOrEqual(t, len(many.rows(nil)), maxSeals)
	var b bytes.Buffer
	page := &term.Output{W: &b}
	f := produceFields{Seals: many.count, SealList: many.rows(nil)}
	require.NoError(t, page.Object(struct{}{}, func(p *term.Page) { sealsPage(p, f) }))
	require.Equal(t, 1+1+1+sealsShown, strings.Count(b.String(), "\n"), b.String())
}
