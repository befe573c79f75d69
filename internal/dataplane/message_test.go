package dataplane

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

var (
	goldenHead = segmentHead{
		ref:   base.RangeRef{Topic: base.TopicID{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}, Range: 3},
		epoch: 5, segment: 7,
	}
	goldenOpen = openMessage{
		segmentHead: goldenHead, base: 0x100, openedMs: 0x200, checksum: 0xfedcba9876543210,
		keyed: true, memory: true, hasState: true, state: []byte{0xaa, 0xbb},
	}
	goldenAppend = appendMessage{
		segmentHead: goldenHead, first: 0x100, appendMs: 0x200, commit: 0xf0, spanLo: 1, spanHi: 1<<64 - 1,
		traced: true, ended: true, batch: []byte{0xcc},
	}
	goldenAck = ackMessage{segmentHead: goldenHead, status: ackLost, reason: replica.ReasonFailed, end: 0x123, fsync: 1500 * time.Microsecond}
)

const goldenHeadHex = "101112131415161718191a1b1c1d1e1f" + "00000003" + "00000005" + "0000000000000007"

// The bytes between nodes are a format: other versions read them.
func TestMessagesKeepTheirBytes(t *testing.T) {
	open := append(goldenOpen.encode(), goldenOpen.state...)
	require.Equal(t, goldenHeadHex+"0000000000000100"+"0000000000000200"+"fedcba9876543210"+"00000007"+"aabb", hex.EncodeToString(open))
	gotOpen, err := decodeOpen(open)
	require.NoError(t, err)
	require.Equal(t, goldenOpen, gotOpen)

	require.Equal(t, goldenHeadHex+"0000000000000100"+"0000000000000200"+"00000000000000f0"+
		"0000000000000001"+"ffffffffffffffff"+"00000003"+"cc", hex.EncodeToString(encodeAppend(&goldenAppend)))
	gotAppend, err := decodeAppend(encodeAppend(&goldenAppend))
	require.NoError(t, err)
	require.Equal(t, goldenAppend, gotAppend)

	require.Equal(t, goldenHeadHex+"0000000000000123"+"000005dc"+"04"+"03", hex.EncodeToString(goldenAck.encode()))
	gotAck, err := decodeAck(goldenAck.encode())
	require.NoError(t, err)
	require.Equal(t, goldenAck, gotAck)
}

func encodeAppend(m *appendMessage) []byte {
	var head [appendHeadSize]byte
	m.put(&head)
	return append(head[:], m.batch...)
}

func TestMessagesThatAreNone(t *testing.T) {
	for _, cut := range []int{0, 1, segmentHeadSize, openHeadSize - 1} {
		_, err := decodeOpen(goldenOpen.encode()[:cut])
		require.ErrorIs(t, err, base.CodeInvalidArgument)
	}
	_, err := decodeAppend(encodeAppend(&goldenAppend)[:appendHeadSize-1])
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	_, err = decodeAck(goldenAck.encode()[:ackSize-1])
	require.ErrorIs(t, err, base.CodeInvalidArgument)

	negative := goldenAppend
	negative.commit = -1
	_, err = decodeAppend(encodeAppend(&negative))
	require.ErrorContains(t, err, "commit -1")
	unknown := goldenAck
	unknown.status = 9
	_, err = decodeAck(unknown.encode())
	require.ErrorContains(t, err, "status_9")
	negativeEnd := goldenAck
	negativeEnd.end = -1
	_, err = decodeAck(negativeEnd.encode())
	require.ErrorContains(t, err, "end -1")
}

// What decodes, encodes to what it was decoded from, but for flags that this version does not know.
func FuzzMessages(f *testing.F) {
	f.Add(append(goldenOpen.encode(), goldenOpen.state...))
	f.Add(encodeAppend(&goldenAppend))
	f.Add(goldenAck.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeOpen(b); err == nil {
			again, err := decodeOpen(append(m.encode(), m.state...))
			require.NoError(t, err)
			require.Equal(t, m.segmentHead, again.segmentHead)
			require.Equal(t, m.checksum, again.checksum)
			require.Equal(t, m.hasState, again.hasState)
		}
		if m, err := decodeAppend(b); err == nil {
			again, err := decodeAppend(encodeAppend(&m))
			require.NoError(t, err)
			require.Equal(t, m, again)
		}
		if m, err := decodeAck(b); err == nil {
			again, err := decodeAck(m.encode())
			require.NoError(t, err)
			require.Equal(t, m, again)
		}
	})
}
