package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store/storetest"
)

func TestSVG(t *testing.T) {
	picture, err := svg([]string{"a\x1b[31mb<&\x1b[m", "\x1b[7m世x\x1b[m"}, 6, 2)
	require.NoError(t, err)
	wellFormed(t, picture)
	for _, want := range []string{`>a</text>`, palette[1], `b&lt;&amp;</text>`, `>世</text>`, `textLength="16.86"`} {
		require.Contains(t, picture, want)
	}
}

// TestPlaces: what stands behind a gap has a place of its own.
func TestPlaces(t *testing.T) {
	picture, err := svg([]string{"│ one two   3 │"}, 15, 1)
	require.NoError(t, err)
	for _, want := range []string{`<text x="12.00" y="25" textLength="75.87" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="#d6d9de">│ one two</text>`, `<text x="113.16" y="25" textLength="25.29" `, `>3 │</text>`} {
		require.Contains(t, picture, want)
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPictures draws views of a made-up incident from a recording of it.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "incident.jsonl")
	f, err := os.Create(recorded)
	require.NoError(t, err)
	enc := json.NewEncoder(f)
	for m := range storetest.Stream(storetest.Options{Seed: 1, Length: 40 * time.Second}) {
		require.NoError(t, enc.Encode(m))
	}
	require.NoError(t, f.Close())
	require.NoError(t, run(recorded, dir, 120, 40, []string{"overview@37s", "segments@37s"}))
	for _, name := range []string{"overview", "segments"} {
		b, err := os.ReadFile(filepath.Join(dir, "eg-top-"+name+".svg"))
		require.NoError(t, err)
		wellFormed(t, string(b))
		require.Contains(t, string(b), "EastGuard")
	}
	require.Error(t, run(recorded, dir, 80, 24, []string{"overview"}))
	require.Error(t, run(filepath.Join(dir, "none"), dir, 80, 24, nil))
}
