package component

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFormats(t *testing.T) {
	for want, got := range map[string]string{
		"128.4 MB/s": Rate(128.4e6), "1.92 GB/s": Rate(1.92e9), "12 kB/s": Rate(12300), "0 B/s": Rate(0), "1.0 MB/s": Rate(999_960), "9.9 kB/s": Rate(9900),
		"512k rec/s": Records(512e3), "1.6M rec/s": Records(1.6e6), "7 rec/s": Records(7), "0.5 rec/s": Records(0.5),
		"25.9M": Short(25.9e6), "12k": Short(12004), "999": Short(999.4), "1.0k": Short(999.96), "-": Short(math.NaN()), "0": Short(-3),
		"2.0 MiB": Bytes(2 << 20), "402 MiB": Bytes(402 << 20), "1.0 GiB": Bytes(1 << 30), "1023 B": Bytes(1023), "1.0 MiB": Bytes(1<<20 - 1), "16.0 EiB": Bytes(math.MaxUint64),
		"1,204,881": Count(1204881), "12": Count(12), "-1,000": Count(-1000), "-9,223,372,036,854,775,808": Count(int64(math.MinInt64)),
		"3s": Age(3*time.Second + 900*time.Millisecond), "2m11s": Age(131 * time.Second), "1h05m": Age(65 * time.Minute), "3d04h": Age(76 * time.Hour), "412d": Age(412 * 24 * time.Hour), "0s": Age(-time.Hour),
		"0.4ms": Duration(400 * time.Microsecond), "96ms": Duration(96 * time.Millisecond), "1.4s": Duration(1400 * time.Millisecond), "1.0s": Duration(999_700 * time.Microsecond), "59.9s": Duration(59_990 * time.Millisecond), "1m00s": Duration(time.Minute),
		"41%": Percent(0.41), "99%": Percent(0.9999), "1%": Percent(0.0001), "0%": Percent(0), "100%": Percent(1), "999%": Percent(1e9),
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, None, Rate(math.Inf(1)))
	require.Equal(t, None, Records(math.NaN()))
	require.Equal(t, None, Percent(math.Inf(-1)))
	require.Equal(t, None, Duration(-1))
}

// Whatever the value, a format keeps to its width, so a column never moves.
func TestFormatsKeepTheirWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := math.Exp(rapid.Float64Range(-5, 45).Draw(t, "log"))
		d := time.Duration(rapid.Int64Range(0, int64(200*365*24*time.Hour)).Draw(t, "duration"))
		if rapid.Bool().Draw(t, "small") {
			d %= 100 * time.Second
		}
		require.LessOrEqual(t, len(Rate(v)), RateWidth, Rate(v))
		require.LessOrEqual(t, len(Records(v)), RecordsWidth, Records(v))
		require.LessOrEqual(t, len(Short(v)), ShortWidth, Short(v))
		require.LessOrEqual(t, len(Bytes(rapid.Uint64().Draw(t, "bytes")>>rapid.IntRange(0, 63).Draw(t, "shift"))), BytesWidth)
		require.LessOrEqual(t, len(Age(d)), AgeWidth, Age(d))
		require.LessOrEqual(t, len(Duration(d)), DurationWidth, Duration(d))
		require.LessOrEqual(t, len(Percent(v)), PercentWidth, Percent(v))
	})
}
