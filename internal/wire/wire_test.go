package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files; only commit a difference that adds fields or messages")

// messages is every message of the protocol, empty.
var messages = []any{
	ErrorMessage{},
	HelloRequest{},
	HelloResponse{},
	PingRequest{},
	PingResponse{},
	ProduceRequest{},
	ProduceResponse{},
	ProduceTrace{},
	FetchRequest{},
	FetchResponse{},
	ListOffsetsRequest{},
	ListOffsetsResponse{},
	ProducerStateRequest{},
	ProducerStateResponse{},
	RouteRequest{},
	RouteResponse{},
	LocateRequest{},
	LocateResponse{},
	CreateTopicRequest{},
	CreateTopicResponse{},
	AlterTopicRequest{},
	AlterTopicResponse{},
	DeleteTopicRequest{},
	DeleteTopicResponse{},
	ListTopicsRequest{},
	ListTopicsResponse{},
	DescribeTopicRequest{},
	DescribeTopicResponse{},
	OpenProducerRequest{},
	OpenProducerResponse{},
	ClusterStatusRequest{},
	ClusterStatusResponse{},
	ClusterHealthRequest{},
	ClusterHealthResponse{},
	DescribeNodeRequest{},
	DescribeNodeResponse{},
	ListNodesRequest{},
	ListNodesResponse{},
	NodeRingRequest{},
	NodeRingResponse{},
	ReachRequest{},
	ReachResponse{},
	ChangeNodeRequest{},
	ChangeNodeResponse{},
	WatchNodeRequest{},
	WatchNodeResponse{},
	WatchLogsRequest{},
	WatchLogsResponse{},
	ListShardsRequest{},
	ListShardsResponse{},
	DescribeShardRequest{},
	DescribeShardResponse{},
	LocateShardRequest{},
	LocateShardResponse{},
	TransferShardRequest{},
	TransferShardResponse{},
	BalanceShardsRequest{},
	BalanceShardsResponse{},
	RecoverShardRequest{},
	RecoverShardResponse{},
	ListSegmentsRequest{},
	ListSegmentsResponse{},
	DescribeSegmentRequest{},
	DescribeSegmentResponse{},
	SealSegmentRequest{},
	ForceSealSegmentRequest{},
	SealSegmentResponse{},
}

func name(m any) string { return strings.ReplaceAll(messageName(m), " ", "_") }

// fill sets every field of a message, however deep, to a value of its own: a field that is lost on the way, or
// swapped with another, shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n) & (math.MaxUint64 >> (64 - v.Type().Bits())))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(-int64(*n) % 100)
	default:
		panic("no message has a " + v.Kind().String())
	}
}

// filled returns a pointer to a message of m's type with every field set.
func filled(m any) any {
	p := reflect.New(reflect.TypeOf(m))
	n := 0
	fill(p.Elem(), &n)
	if f, ok := p.Interface().(*FetchRequest); ok {
		for i := range f.Ranges {
			f.Ranges[i].Span = keyspace.Span{Start: uint64(i), End: 1 << 60}
		}
	}
	return p.Interface()
}

// Every message, with every field set, has the bytes that it had when it was released, and decodes to itself.
func TestGolden(t *testing.T) {
	for _, m := range messages {
		t.Run(name(m), func(t *testing.T) {
			full := filled(m)
			got := Encode(full)
			require.Equal(t, got, Encode(reflect.ValueOf(full).Elem().Interface()), "by value and by pointer")
			require.Equal(t, append([]byte("before"), got...), Append([]byte("before"), full))

			file := filepath.Join("testdata", name(m)+".hex")
			if *rewrite {
				require.NoError(t, os.WriteFile(file, wrapped(got), 0o600))
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			want, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
			require.NoError(t, err)
			require.Equal(t, want, got, "the encoding changed: fields may be added (then -rewrite), nothing else")

			back := reflect.New(reflect.TypeOf(m)).Interface()
			require.NoError(t, Decode(got, back))
			require.Empty(t, cmp.Diff(full, back))

			// The empty message too.
			back = reflect.New(reflect.TypeOf(m)).Interface()
			require.NoError(t, Decode(Encode(m), back))
			require.Empty(t, cmp.Diff(Encode(m), Encode(back)))
		})
	}
	files, err := filepath.Glob("testdata/*.hex")
	require.NoError(t, err)
	require.Len(t, files, len(messages), "a golden file without a message: its kind may not go away")
}

func wrapped(b []byte) []byte {
	var out bytes.Buffer
	for text := hex.EncodeToString(b); text != ""; {
		n := min(64, len(text))
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return out.Bytes()
}

// The list above must be complete: it is compared with the exported types whose names end in Request or Response.
func TestEveryMessageHasAGolden(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range messages {
		listed[reflect.TypeOf(m).Name()] = true
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() &&
				(strings.HasSuffix(spec.Name.Name, "Request") || strings.HasSuffix(spec.Name.Name, "Response")) {
				require.True(t, listed[spec.Name.Name], spec.Name.Name)
			}
			return true
		})
	}
}

// A CBOR message needs an integer key on each field, none of them twice.
func TestCBORFieldsAreNumbered(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] {
			return
		}
		seen[typ] = true
		keys := map[string]string{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			key, rest, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			require.NotEmpty(t, key, "%s.%s has no key", typ, f.Name)
			require.Contains(t, rest, "keyasint", "%s.%s", typ, f.Name)
			require.Empty(t, keys[key], "%s.%s has the key of another field", typ, f.Name)
			keys[key] = f.Name
			check(f.Type)
		}
	}
	for _, m := range messages {
		if _, hot := m.(hotAppender); !hot {
			check(reflect.TypeOf(m))
		}
	}
}

// A message from a newer peer, with more fields or more bytes behind it, is read for what is known of it.
func TestNewerPeers(t *testing.T) {
	type newer struct {
		Node   base.NodeID    `cbor:"1,keyasint"`
		TimeMs int64          `cbor:"2,keyasint"`
		Boot   uint64         `cbor:"3,keyasint,omitempty"`
		Future map[string]any `cbor:"99,keyasint"`
	}
	b, err := encMode.Marshal(newer{Node: "n1", TimeMs: 5, Future: map[string]any{"a": []int{1, 2}}})
	require.NoError(t, err)
	var m PingResponse
	require.NoError(t, Decode(b, &m))
	require.Equal(t, PingResponse{Node: "n1", TimeMs: 5}, m)

	for _, hot := range []any{ProduceRequest{}, ProduceResponse{}, FetchRequest{}, FetchResponse{}} {
		full := filled(hot)
		back := reflect.New(reflect.TypeOf(hot)).Interface()
		require.NoError(t, Decode(append(Encode(full), "more"...), back))
		require.Empty(t, cmp.Diff(full, back))
	}
}

// Who asks again and again decodes each answer into the same message: nothing of an earlier one may show.
func TestDecodeForgetsWhatWasThere(t *testing.T) {
	for _, m := range messages {
		t.Run(name(m), func(t *testing.T) {
			used := filled(m)
			require.NoError(t, Decode(Encode(m), used))
			fresh := reflect.New(reflect.TypeOf(m)).Interface()
			require.NoError(t, Decode(Encode(m), fresh))
			require.Empty(t, cmp.Diff(fresh, used, cmpopts.EquateEmpty()))
		})
	}
	failed := ListOffsetsResponse{Offsets: []OffsetAnswer{{Error: &ErrorMessage{Code: base.CodeBehind}}}}
	require.NoError(t, Decode(Encode(ListOffsetsResponse{Offsets: []OffsetAnswer{{Offset: 1}}}), &failed))
	require.Nil(t, failed.Offsets[0].Error)
}

func TestDecodeRefuses(t *testing.T) {
	cbor := func(text string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		require.NoError(t, err)
		return b
	}
	fetch := Encode(FetchRequest{Ranges: make([]FetchRange, 3)})
	with := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		into  any
		want  string
	}{
		{"nothing", nil, &PingResponse{}, "decode ping response: EOF"},
		{"not a map", cbor("83 01 02 03"), &PingResponse{}, "array"},
		{"a key twice", cbor("a2 02 01 02 02"), &PingResponse{}, "duplicate map key"},
		{"a million keys", cbor("ba 00 0f 42 40"), &PingResponse{}, "exceeded"},
		{"2^32 elements", cbor("a1 01 9b 00000000ffffffff"), &ListOffsetsRequest{}, "exceeded"},
		{"a string of 2^40 bytes", cbor("a1 01 7b 0000010000000000"), &PingResponse{}, "unexpected EOF"},
		{"too deep", append(append(cbor("a1 18 63"), bytes.Repeat([]byte{0x81}, 100)...), 1), &PingResponse{}, "nested"},
		{"bytes behind it", cbor("a0 00"), &PingResponse{}, "extraneous"},
		{"invalid UTF-8", cbor("a1 01 61 ff"), &PingResponse{}, "UTF-8"},
		{"indefinite", cbor("bf 02 01 ff"), &PingResponse{}, "indefinite"},
		{"a tag", cbor("a1 02 c0 01"), &PingResponse{}, "tag"},
		{"too large a number", cbor("a1 04 19 0100"), &HelloRequest{}, "overflow"},
		{"a short produce", make([]byte, produceRequestSize-1), &ProduceRequest{}, "43 bytes are too few"},
		{"produce flags", with(Encode(ProduceRequest{}), 21, 2), &ProduceRequest{}, "not known"},
		{"a short ack", make([]byte, produceResponseSize-1), &ProduceResponse{}, "too few"},
		{"replicas that are not there", with(Encode(ProduceResponse{}), 29, 1), &ProduceResponse{}, "1 node ids do not fit in 0 bytes"},
		{"a replica cut short", with(Encode(ProduceResponse{Replicas: []base.NodeID{"n1", "n2"}}), 35, 3), &ProduceResponse{}, "2 node ids do not fit in 6 bytes"},
		{"a short fetch", make([]byte, fetchRequestSize-1), &FetchRequest{}, "too few"},
		{"more ranges than bytes", with(fetch, 12, 0, 4), &FetchRequest{}, "4 entries of 60 bytes do not fit in 180"},
		{"65,535 ranges", with(fetch, 12, 0xff, 0xff), &FetchRequest{}, "at most 4096"},
		{"fetch flags", with(fetch, fetchRequestSize+43, 1), &FetchRequest{}, "not known"},
		{"an empty span", with(fetch, fetchRequestSize+fetchRangeSize-16, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1), &FetchRequest{}, "is empty"},
		{"a short answer", []byte{0}, &FetchResponse{}, "too few"},
		{"results that are not there", []byte{0, 1, 0, 0}, &FetchResponse{}, "do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Decode(c.bytes, c.into)
			require.ErrorIs(t, err, base.CodeCorruptFrame)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestFetchPayloads(t *testing.T) {
	m := FetchResponse{Ranges: []FetchRangeResult{{PayloadLen: 2}, {}, {PayloadLen: 3}}}
	parts, err := m.Payloads([]byte("aabbb"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("aa"), {}, []byte("bbb")}, parts)
	for _, payload := range []string{"aabb", "aabbbb", ""} {
		_, err := m.Payloads([]byte(payload))
		require.ErrorIs(t, err, base.CodeCorruptFrame, payload)
	}
}

func TestTooManyFetchRanges(t *testing.T) {
	require.Panics(t, func() { Encode(FetchRequest{Ranges: make([]FetchRange, MaxFetchRanges+1)}) })
	require.Panics(t, func() { Encode(func() {}) })
}

func TestErrors(t *testing.T) {
	full := base.Errorf(base.CodeNotLeader, "produce", "n2 leads now").WithHint("ask n2").
		WithOutcome(base.Unknown).WithRedirect(base.Redirect{Node: "n2", Address: "10.0.0.2:2921"})
	full.Node, full.RequestID = "n1", base.RequestID{1, 2, 3}
	require.Equal(t, full, DecodeError(EncodeError(full)))
	require.Equal(t, full, DecodeError(EncodeError(fmt.Errorf("wrapped: %w", full))))

	for _, c := range []struct {
		err     error
		code    base.Code
		outcome base.Outcome
		text    string
	}{
		{base.CodeTopicNotFound, base.CodeTopicNotFound, base.NotApplied, "no such topic"},
		{errors.New("disk on fire"), base.CodeInternal, base.Unknown, "disk on fire"},
		{context.DeadlineExceeded, base.CodeTimeout, base.Unknown, "deadline exceeded"},
		{fmt.Errorf("wait: %w", context.Canceled), base.CodeCanceled, base.Unknown, "wait: context canceled"},
		{nil, base.CodeInternal, base.Unknown, "without an error"},
		{&base.Error{}, base.CodeInternal, base.NotApplied, ""},
		{base.Errorf(base.CodeInternal, "", "bad \xff utf-8"), base.CodeInternal, base.NotApplied, "bad  utf-8"},
	} {
		got := DecodeError(EncodeError(c.err))
		require.Equal(t, c.code, got.Code, c.err)
		require.Equal(t, c.outcome, got.Outcome, c.err)
		require.ErrorContains(t, got, c.text)
	}

	long := base.Errorf(base.CodeInvalidArgument, "", "%s", strings.Repeat("é", 100_000))
	require.LessOrEqual(t, len(EncodeError(long)), 3*maxErrorText)
	require.ErrorIs(t, DecodeError(EncodeError(long)), base.CodeInvalidArgument)

	require.ErrorIs(t, DecodeError([]byte("garbage")), base.CodeCorruptFrame)
	require.Equal(t, base.Unknown, base.OutcomeOf(DecodeError([]byte("garbage"))))
}

func TestKinds(t *testing.T) {
	seen := make(map[string]bool)
	for k := range kindNames {
		require.False(t, seen[k.String()], "%s stands twice", k)
		seen[k.String()] = true
		require.True(t, k.Known())
	}
	require.Equal(t, "kind_999", Kind(999).String())
	require.False(t, Kind(999).Known())
}

func TestHotMessagesDoNotAllocate(t *testing.T) {
	ack := ProduceResponse{Base: 1, Replicas: []base.NodeID{"n1", "n2", "n3"}}
	acked, answer := Encode(ack), ProduceResponse{}
	require.NoError(t, Decode(acked, &answer))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		acked = Append(acked[:0], &ack)
		if Decode(acked, &answer) != nil {
			t.Fatal()
		}
	}), "the replicas are those of the last ack")
	first := answer.Replicas
	require.NoError(t, Decode(Encode(ProduceResponse{Replicas: []base.NodeID{"n1", "n4", "n3"}}), &answer))
	require.Equal(t, ack.Replicas, first, "what an earlier ack said is not written over")

	request := FetchRequest{Ranges: make([]FetchRange, 100)}
	b := Encode(request)
	var back FetchRequest
	require.NoError(t, Decode(b, &back))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b = Append(b[:0], &request)
		if Decode(b, &back) != nil {
			t.Fatal()
		}
	}))
}

// FuzzDecode: any bytes decode or fail, without a panic and without memory that only a length has claimed.
func FuzzDecode(f *testing.F) {
	for i, m := range messages {
		f.Add(uint8(i), Encode(filled(m)))
	}
	f.Add(uint8(1), []byte{0x9b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		m := reflect.New(reflect.TypeOf(messages[int(i)%len(messages)])).Interface()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Decode(b, m)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(1<<20+200*len(b)) {
			t.Fatalf("%d bytes made %T allocate %d", len(b), m, grown)
		}
		if err != nil {
			if !errors.Is(err, base.CodeCorruptFrame) {
				t.Fatal(err)
			}
			return
		}
		again := reflect.New(reflect.TypeOf(m).Elem()).Interface()
		if err := Decode(Encode(m), again); err != nil {
			t.Fatalf("%T does not survive a round trip: %v", m, err)
		}
		if !bytes.Equal(Encode(m), Encode(again)) {
			t.Fatalf("%T changed in a round trip", m)
		}
	})
}
