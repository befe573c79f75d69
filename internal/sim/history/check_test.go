package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

var a, b = base.TopicID{1}, base.TopicID{2}

func op(call, ret int64, kind Kind, answer Answer, id base.TopicID, values ...string) Op {
	o := Op{Topic: "t", Kind: kind, Answer: answer, Call: call, Return: ret, ID: id}
	if len(values) > 0 && kind == Describe {
		o.Seen = values[0]
	} else if len(values) > 0 {
		o.Value = values[0]
	}
	return o
}

func TestCheck(t *testing.T) {
	none := base.TopicID{}
	for _, tc := range []struct {
		name  string
		legal bool
		ops   []Op
	}{
		{"in a row", true, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 3, Describe, Done, a, "x"), op(4, 5, Alter, Done, a, "y"),
			op(6, 7, Describe, Done, a, "y"), op(8, 9, Delete, Done, a), op(10, 11, Describe, NotFound, none),
		}},
		{"an acknowledged creation is lost", false, []Op{op(0, 1, Create, Done, a, "x"), op(2, 3, Describe, NotFound, none)}},
		{"an acknowledged change is lost", false, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 3, Alter, Done, a, "y"), op(4, 5, Describe, Done, a, "x"),
		}},
		{"a stale read beside the change", true, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 9, Alter, Done, a, "y"), op(3, 4, Describe, Done, a, "x"),
		}},
		{"a read goes back", false, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 9, Alter, Done, a, "y"), op(3, 4, Describe, Done, a, "y"), op(5, 6, Describe, Done, a, "x"),
		}},
		{"two creations both done", false, []Op{op(0, 9, Create, Done, a, "x"), op(1, 8, Create, Done, b, "y")}},
		{"two creations, one refused", true, []Op{op(0, 9, Create, Done, a, "x"), op(1, 8, Create, Exists, none, "y")}},
		{"an unknown creation that happened", true, []Op{op(0, 1, Create, Unknown, none, "x"), op(5, 6, Describe, Done, a, "x")}},
		{"an unknown creation that did not", true, []Op{op(0, 1, Create, Unknown, none, "x"), op(5, 6, Describe, NotFound, none)}},
		{"an unknown creation that comes late", true, []Op{
			op(0, 1, Create, Unknown, none, "x"), op(5, 6, Describe, NotFound, none), op(7, 8, Describe, Done, a, "x"),
		}},
		{"an unknown creation under two ids", false, []Op{
			op(0, 1, Create, Unknown, none, "x"), op(5, 6, Describe, Done, a, "x"), op(7, 8, Describe, Done, b, "x"),
		}},
		{"an unknown change that happens twice", false, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 3, Alter, Unknown, none, "y"), op(4, 5, Describe, Done, a, "y"),
			op(6, 7, Alter, Done, a, "z"), op(8, 9, Describe, Done, a, "y"),
		}},
		{"a deleted topic comes back", false, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 3, Delete, Done, a), op(4, 5, Describe, Done, a, "x"),
		}},
		{"a name is used again", true, []Op{
			op(0, 1, Create, Done, a, "x"), op(2, 3, Delete, Done, a), op(4, 5, Create, Done, b, "y"), op(6, 7, Describe, Done, b, "y"),
		}},
		{"what failed says nothing", true, []Op{op(0, 1, Create, Failed, none, "x"), op(2, 3, Describe, NotFound, none)}},
		{"what failed did happen", false, []Op{op(0, 1, Create, Failed, none, "x"), op(2, 3, Describe, Done, a, "x")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Check(tc.ops, time.Minute)
			require.Equal(t, tc.legal, err == nil, "%v", err)
		})
	}
}

func TestFates(t *testing.T) {
	none := base.TopicID{}
	for _, tc := range []struct {
		name string
		want Fate
		ops  []Op
	}{
		{"created", Present, []Op{op(0, 1, Create, Done, a)}},
		{"deleted", Absent, []Op{op(0, 1, Create, Done, a), op(2, 3, Delete, Done, a)}},
		{"made again", Present, []Op{op(0, 1, Create, Done, a), op(2, 3, Delete, Done, a), op(4, 5, Create, Done, b)}},
		{"both at once", Either, []Op{op(0, 1, Create, Done, a), op(2, 5, Delete, Done, a), op(3, 6, Create, Done, b)}},
		{"both at once, then another", Absent, []Op{op(2, 5, Delete, Done, a), op(3, 6, Create, Done, b), op(7, 8, Delete, Done, b)}},
		{"one is unknown", Either, []Op{op(0, 1, Create, Unknown, none), op(2, 3, Delete, NotFound, none)}},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, Fates(tc.ops)["t"]) })
	}
}
