package wal

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// TestFormatExample holds the code against the example in FORMAT.md.
func TestFormatExample(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	var want []byte
	for _, line := range regexp.MustCompile(`(?m)^offset \d+  (.*)$`).FindAllStringSubmatch(string(doc), -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[1], " ", ""))
		require.NoError(t, err)
		want = append(want, b...)
	}
	var l layout
	l.reset(0)
	e := newEntry(Entry{Kind: 5, Parts: [][]byte{[]byte("ab"), []byte("c")}}, 3, nil)
	l.reserve([]entry{e})
	l.entry(&e, fileID(1).seed())
	l.mark(fileID(1).seed(), 32)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(l.buf))
}

func TestHeaderRoundTrip(t *testing.T) {
	h := header{version: version, seq: 7, id: 9, base: 1 << 40, size: 64 << 20, uuid: base.UUID{1, 2, 3}}
	got, ok := decodeHeader(h.encode())
	require.True(t, ok)
	require.Equal(t, h, got)
	_, ok = decodeHeader(make([]byte, headerBytes))
	require.False(t, ok, "zeros")
}

func TestNames(t *testing.T) {
	seq, id, ok := parseLogName(logName(0x12, 0xabc))
	require.True(t, ok)
	require.Equal(t, uint64(0x12), seq)
	require.Equal(t, fileID(0xabc), id)
	got, ok := parseSpareName(spareName(5))
	require.True(t, ok)
	require.Equal(t, uint64(5), got)
	for _, bad := range []string{"", ".wal", "1-2.wal", "000000000000000A-0000000000000001.wal", logName(1, 2) + damagedSuffix, "x" + logName(1, 2)} {
		_, _, ok := parseLogName(bad)
		require.False(t, ok, bad)
	}
	_, ok = parseSpareName("5.spare")
	require.False(t, ok)
}
