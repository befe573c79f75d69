package term

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
)

type texts struct {
	A Text   `json:"a,omitzero" col:"A"`
	B Text   `json:"b,omitzero" col:"B"`
	C string `json:"c" col:"C"`
}

// Null, empty and what merely looks like them are told apart in every format for programs.
func TestNullAndEmptyInCSVAndTSV(t *testing.T) {
	rows := []texts{{Null(), String(""), ""}, {String(`\N`), String(`""`), "x"}, {Text{}, String(" a,b\n"), ""}}
	for format, want := range map[Format]string{
		FormatCSV: "a,b,c\n,\"\",\n\\N,\"\"\"\"\"\",x\n,\" a,b\n\",\n",
		FormatTSV: "a\tb\tc\n\\N\t\t\n\\\\N\t\"\"\tx\n\t a,b\\n\t\n",
	} {
		var b bytes.Buffer
		if err := (&Output{W: &b, Format: format}).List(rows); err != nil || b.String() != want {
			t.Errorf("%s: %v\n got  %q\n want %q", format, err, b.String(), want)
		}
	}
}

// Whatever the text, a reader of CSV gets it back.
func FuzzCSVReadsBack(f *testing.F) {
	f.Add("a", "b")
	f.Add("", " ,\"\n")
	f.Add(`\.`, "\t")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\r") {
			t.Skip("encoding/csv makes \\r\\n one newline")
		}
		var out bytes.Buffer
		if err := (&Output{W: &out, Format: FormatCSV, NoHeaders: true}).List([]texts{{String(a), String(b), "c"}}); err != nil {
			t.Fatal(err)
		}
		got, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(got) != 1 || got[0][0] != a || got[0][1] != b {
			t.Fatalf("%v: %q from %q %q", err, got, a, b)
		}
	})
}
