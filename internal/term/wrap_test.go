package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	text := `Prose flows over its lines
when they have no room.

  a; b     two commands, one after the other
  short    one
  an indented line with no columns at all
`
	if got := Fold(text, 60); got != text {
		t.Errorf("what fits was changed:\n%s", got)
	}
	want := `Prose flows over its lines
when they have no room.

  a; b     two commands, one
           after the other
  short    one
  an indented line with no
  columns at all
`
	if diff := cmp.Diff(want, Fold(text, 30)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for width := 20; width < 70; width++ {
		folded := Fold(text, width)
		for _, line := range strings.Split(folded, "\n") {
			if Width(line) > width {
				t.Errorf("%d cells: %q", width, line)
			}
		}
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(folded)); diff != "" {
			t.Errorf("%d cells: words (-want +got)\n%s", width, diff)
		}
	}
}

// A sentence that has no room goes on below, beside nothing.
func TestSentencesFold(t *testing.T) {
	type row struct {
		ID     string `json:"id" col:"ID"`
		Check  string `json:"check" col:"CHECK,fold"`
		Result string `json:"result" col:"RESULT"`
		Detail string `json:"detail" col:"DETAIL,fold"`
	}
	rows := []row{{"EG1", "nodes are alive", "FAIL", "2 of 3 nodes alive; dead: n1"}, {"EG2", "all agree", "PASS", "yes"}}
	want := `ID   CHECK         RESULT  DETAIL
EG1  nodes are     FAIL    2 of 3 nodes
     alive                 alive; dead:
                           n1
EG2  all agree     PASS    yes
`
	if diff := cmp.Diff(want, render(t, Output{Width: 39}, rows)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := render(t, Output{Width: 100}, rows); strings.Count(got, "\n") != 3 {
		t.Errorf("folded with room enough:\n%s", got)
	}
}
