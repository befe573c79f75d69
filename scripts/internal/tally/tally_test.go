package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	const in = `not json: a build message
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"run","Package":"p","Test":"TestA/two"}
{"Action":"output","Package":"p","Test":"TestA/two","Output":"two is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA/two"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"chatter\n"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p","Elapsed":1.5}
{"Action":"output","Package":"q","Output":"panic: out of time\n"}
{"Action":"fail","Package":"q"}
{"Action":"skip","Package":"no/tests"}
`
	var out bytes.Buffer
	c, err := tally(strings.NewReader(in), &out)
	require.NoError(t, err)
	require.Equal(t, counts{passed: 2, failed: 2, skipped: 1}, c, "parents are only the sum of their subtests; a crashed package is one failure")
	for _, want := range []string{"not json: a build message\n", "two is wrong\n", "SKIP  p TestB: b_test.go:3: needs root\n", "FAIL  p  1.5s\n", "panic: out of time\n"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "chatter")
	require.NotContains(t, out.String(), "no/tests")
}

func TestParentThatFailsByItselfCounts(t *testing.T) {
	const in = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`
	c, err := tally(strings.NewReader(in), &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, counts{passed: 1, failed: 1}, c)
}
