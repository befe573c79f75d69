package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
)

// Numbers on screen have few digits and the same number of them, so that columns keep still.

// none is what stands where nothing is known.
const none = component.None

// tight is a rate without its blank: 61.2MB/s.
func tight(perSecond float64) string { return strings.ReplaceAll(component.Rate(perSecond), " ", "") }

// short is a count in at most four characters: 88, 1.2k, 12k, 54M.
func short(n int64) string {
	text := component.Short(float64(n))
	if head, tail, ok := strings.Cut(text, "."); ok && len(head) > 1 {
		return head + tail[len(tail)-1:]
	}
	return text
}

// ms are microseconds as milliseconds: 3.1, 22, 121.
func ms(us int64) string {
	v := float64(us) / 1000
	if v < 99.95 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// age is how long ago something was: 3s, 2m11s, 3d04h; a dash if that is not known.
func age(t, now time.Time) string {
	if t.IsZero() {
		return none
	}
	return component.Age(now.Sub(t))
}

// brief is an age in one unit: 17s, 21m, 3d.
func brief(t, now time.Time) string {
	if t.IsZero() {
		return none
	}
	switch d := max(now.Sub(t), 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// took is how long something took, in a column: 0.4ms, 96ms, 1.4s, 2m11s.
func took(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case d < 0:
		return none
	case ms < 9.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	}
	return component.Age(d)
}

// stood is how long something stood still, in a column, from whole milliseconds: 5ms, 96ms, 1.4s.
func stood(ms int64) string {
	if ms < 10 {
		return fmt.Sprintf("%dms", ms) // there are no tenths to tell
	}
	return took(time.Duration(ms) * time.Millisecond)
}

// span is a duration as people say it: 96 ms, 1.4 s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return component.Age(d)
}

// share is a part of a whole in percent; a dash if there is no whole.
func share(part, whole int64) string {
	if whole <= 0 {
		return none
	}
	return fmt.Sprintf("%.0f%%", 100*min(max(portion(part, whole), 0), 9.99))
}

// portion is a part of a whole as a number; nothing if there is no whole. Nodes may tell anything: it is not clamped.
func portion(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func perMillion(n int) string {
	if n <= 0 {
		return none
	}
	return fmt.Sprintf("%.1f%%", float64(n)/1e4)
}

// hash is the first digits of a position or a hash: 0x5000.
func hash(h uint64) string { return fmt.Sprintf("0x%04x", h>>48) }

// end is the end of a slice of the hash space, which is not in the slice any more; 0 is that of all of it.
func end(h uint64) string {
	if h == 0 {
		return "2^64"
	}
	return hash(h)
}

func plural(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(one) > 0 && one[len(one)-1] == 'y':
		return component.Count(n) + " " + one[:len(one)-1] + "ies"
	}
	return component.Count(n) + " " + one + "s"
}

// width of a range in the key space, as a part of it.
func width(r *store.Range) float64 {
	if n := r.End - r.Start; n != 0 {
		return math.Ldexp(float64(n), -64)
	}
	return 1
}
