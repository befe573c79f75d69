package page

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// TestExtremes has brokers send numbers from the ends of their types, and names of any kind, in every field of every message,
// and draws every page of what that leads to.
func TestExtremes(t *testing.T) {
	themes := []*styles.Theme{styles.NewTheme(styles.TrueColor, false), styles.NewTheme(styles.NoColor, true)}
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 11))
		e := extremes{random}
		s := store.New(store.Options{HistoryBytes: 1 << 20})
		for i := range 150 {
			s.Apply(e.message(noon.Add(time.Duration(i) * time.Second)))
		}
		v := s.View(noon.Add(150 * time.Second))
		for _, p := range Pages() {
			w, h := 60+random.IntN(150), 15+random.IntN(50)
			c := component.NewCanvas(w, h, themes[random.IntN(2)])
			st := anyState(random)
			Draw(c, p, v, &st)
			check(t, c, w, h)
			use(p, v, &st, random)
			c.Reset(w, h, c.Theme())
			Draw(c, p, v, &st)
			check(t, c, w, h)
		}
		if old, ok := s.At(noon.Add(time.Duration(random.IntN(150)) * time.Second)); ok {
			c := component.NewCanvas(120, 40, themes[0])
			st := anyState(random)
			Draw(c, Get(Overview), old, &st)
		}
	}
}

// extremes makes values that no honest broker sends.
type extremes struct{ *rand.Rand }

// message is one with a payload of some kind.
func (e extremes) message(at time.Time) store.Message {
	m := store.Message{Time: at, Node: e.node(), Boot: uint64(e.IntN(3))}
	v := reflect.ValueOf(&m).Elem()
	for {
		f := v.Field(e.IntN(v.NumField()))
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			e.fill(f.Elem(), 0)
			return m
		}
	}
}

func (e extremes) node() sdk.NodeID {
	return []sdk.NodeID{"n1", "n2", "n3", "", sdk.NodeID(e.text())}[e.IntN(5)]
}

func (e extremes) text() string {
	words := []string{
		"n1", "n2", "alive", "dead", "suspect", "left", "active", "sealed", "orders", "orders/r1", "SEGMENT_SEALED", "SEGMENT_OPENED", "LEADER_CHANGED",
		"RANGE_SPLIT", "RANGE_MERGED", "REPAIR_STARTED", "SEGMENT_REPAIRED", "GROUP_GENERATION", "TOPIC_DELETED", "shard 3", "leader", "rebalancing",
		"segment=s1 next=s2 end=-9 bytes=-1 base=-5 replicas=n1,n2 term=3", "children=r1,r2 parents=r1 at=0xffffffffffffffff streak=-1", "DATA_PRESSURE",
	}
	if e.IntN(3) == 0 {
		return nasty[e.IntN(len(nasty))]
	}
	return words[e.IntN(len(words))]
}

func (e extremes) number() int64 {
	numbers := []int64{0, 1, -1, 2, 3, 1000, -1000, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, math.MaxInt32, math.MinInt32, 1 << 53, noon.UnixMilli(), -noon.UnixMilli()}
	return numbers[e.IntN(len(numbers))]
}

var timeType = reflect.TypeFor[time.Time]()

func (e extremes) fill(v reflect.Value, depth int) {
	if e.IntN(4) == 0 {
		return
	}
	switch {
	case v.Type() == timeType:
		times := []time.Time{{}, noon, noon.Add(-time.Hour), time.Unix(0, 0), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
		v.Set(reflect.ValueOf(times[e.IntN(len(times))])) // ours, or of a recording: years of four digits
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				e.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		e.fill(v.Elem(), depth+1)
	case reflect.Slice:
		n := e.IntN(6)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			e.fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			e.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString(e.text())
	case reflect.Bool:
		v.SetBool(e.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(e.number())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(e.number()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, -1, 1e300, math.Inf(1), math.NaN()}[e.IntN(5)])
	default:
	}
}
