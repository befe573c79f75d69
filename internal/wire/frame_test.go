package wire

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
)

func TestFrameHeaderLayout(t *testing.T) {
	h := FrameHeader{Version: 1, Flags: FlagResponse | FlagMore, Kind: KindFetch, MessageLen: 0x00010203, PayloadLen: 0x01020304, RequestID: 0x1122334455667788}
	b := h.Append(nil)
	require.Equal(t, "4547"+"01"+"05"+"0011"+"0000"+"00010203"+"01020304"+"1122334455667788", hex.EncodeToString(b))
	require.Len(t, b, FrameSize)
	got, err := ParseFrameHeader(b)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, 0x00010203+0x01020304, h.BodyLen())
}

func TestFrameHeaderRefuses(t *testing.T) {
	good := FrameHeader{Version: 1, Kind: KindPing}
	for _, c := range []struct {
		name string
		b    []byte
		code base.Code
		text string
	}{
		{"nothing", nil, base.CodeCorruptFrame, "too few"},
		{"a byte missing", good.Append(nil)[:FrameSize-1], base.CodeCorruptFrame, "too few"},
		{"magic", append([]byte("GE"), good.Append(nil)[2:]...), base.CodeCorruptFrame, "0x4745"},
		{"version 0", FrameHeader{Version: 0}.Append(nil), base.CodeUnsupportedVersion, "version 0"},
		{"version 2", FrameHeader{Version: 2}.Append(nil), base.CodeUnsupportedVersion, "version 2"},
		{"unknown flag", FrameHeader{Version: 1, Flags: 0x10}.Append(nil), base.CodeCorruptFrame, "flags 0x10"},
		{"an error that is no answer", FrameHeader{Version: 1, Flags: FlagError}.Append(nil), base.CodeCorruptFrame, "on a request"},
		{"more that is no answer", FrameHeader{Version: 1, Flags: FlagMore}.Append(nil), base.CodeCorruptFrame, "on a request"},
		{"reserved", func() []byte { b := good.Append(nil); b[7] = 1; return b }(), base.CodeCorruptFrame, "reserved 0x0001"},
		{"long message", FrameHeader{Version: 1, MessageLen: MaxMessage + 1}.Append(nil), base.CodeCorruptFrame, "a message of"},
		{"longest message", FrameHeader{Version: 1, MessageLen: math.MaxUint32}.Append(nil), base.CodeCorruptFrame, "a message of"},
		{"long payload", FrameHeader{Version: 1, PayloadLen: MaxPayload + 1}.Append(nil), base.CodeCorruptFrame, "a payload of"},
		{"2^31", FrameHeader{Version: 1, PayloadLen: 1 << 31}.Append(nil), base.CodeCorruptFrame, "a payload of 2147483648"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseFrameHeader(c.b)
			require.ErrorIs(t, err, c.code)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestFrameHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := FrameHeader{
			Version: Version, Kind: Kind(rapid.Uint16().Draw(t, "kind")), RequestID: rapid.Uint64().Draw(t, "id"),
			Flags:      rapid.SampledFrom([]Flags{0, FlagForward, FlagResponse, FlagResponse | FlagError, FlagResponse | FlagMore}).Draw(t, "flags"),
			MessageLen: rapid.Uint32Range(0, MaxMessage).Draw(t, "message"), PayloadLen: rapid.Uint32Range(0, MaxPayload).Draw(t, "payload"),
		}
		got, err := ParseFrameHeader(h.Append(nil))
		if err != nil || got != h {
			t.Fatalf("%+v, %v; want %+v", got, err, h)
		}
	})
}
