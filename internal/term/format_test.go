package term

import (
	"encoding/json"
	"testing"
	"time"
)

func TestFormatBytes(t *testing.T) {
	tests := []struct {
		mode BytesMode
		n    int64
		want string
	}{
		{BytesIEC, 0, "0 B"},
		{BytesIEC, 16, "16 B"},
		{BytesIEC, 1023, "1023 B"},
		{BytesIEC, 1024, "1.0 KiB"},
		{BytesIEC, 1<<20 - 1, "1.0 MiB"},
		{BytesIEC, 3 << 30, "3.0 GiB"},
		{BytesSI, 1500, "1.5 kB"},
		{BytesRaw, 1 << 30, "1073741824"},
		{BytesIEC, 1<<63 - 1, "8.0 EiB"},
	}
	for _, tt := range tests {
		if got := tt.mode.Format(tt.n); got != tt.want {
			t.Errorf("%s %d = %q, want %q", tt.mode, tt.n, got, tt.want)
		}
	}
}

func TestFormatCountAndRate(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -1 << 63: "-9,223,372,036,854,775,808"} {
		if got := FormatCount(n); got != want {
			t.Errorf("FormatCount(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 512: "512", 51234: "51.2k", 1.6e6: "1.6M"} {
		if got := FormatRate(n); got != want {
			t.Errorf("FormatRate(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatTook(t *testing.T) {
	tests := map[time.Duration]string{
		0: "0.00 ms", 310 * time.Microsecond: "0.31 ms", 7900 * time.Microsecond: "7.9 ms", 9960 * time.Microsecond: "10 ms",
		14 * time.Millisecond: "14 ms", 999 * time.Millisecond: "999 ms", 2345 * time.Millisecond: "2.3 s", 75 * time.Second: "1m15s",
	}
	for d, want := range tests {
		if got := FormatTook(d); got != want {
			t.Errorf("FormatTook(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestFormatAge(t *testing.T) {
	day := 24 * time.Hour
	tests := map[time.Duration]string{
		-time.Second: "0s", 4 * time.Second: "4s", 192 * time.Second: "3m12s", 3*day + 4*time.Hour: "3d04h", 800 * day: "2y70d", 5 * time.Hour: "5h00m",
	}
	for d, want := range tests {
		if got := FormatAge(d); got != want {
			t.Errorf("FormatAge(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0.5": 500 * time.Millisecond, "250ms": 250 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "7d": 168 * time.Hour,
		"1d12h": 36 * time.Hour, "0": 0, "100us": 100 * time.Microsecond,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-5", "-5s", "NaN", "1e300", "Inf", "5 parsecs"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q = %v, want an error", in, got)
		}
	}
}

func TestParseRateAndCount(t *testing.T) {
	for in, want := range map[string]float64{"100": 100, "5000/s": 5000, "50k/s": 50000, "600/m": 10, "1.5k": 1500, "36/h": 0.01} {
		if got, err := ParseRate(in); err != nil || got != want {
			t.Errorf("rate %q = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "-1", "x/s", "5/fortnight", "5MiB/s"} {
		if got, err := ParseRate(in); err == nil {
			t.Errorf("rate %q = %v, want an error", in, got)
		}
	}
	for in, want := range map[string]int64{"0": 0, "100": 100, "10k": 10000, "1M": 1e6} {
		if got, err := ParseCount(in); err != nil || got != want {
			t.Errorf("count %q = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "1.5", "-1", "1x"} {
		if got, err := ParseCount(in); err == nil {
			t.Errorf("count %q = %v, want an error", in, got)
		}
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 30, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"now": now, "-10m": now.Add(-10 * time.Minute), "-7d": now.Add(-7 * 24 * time.Hour),
		"2026-11-29T12:00Z": now.Add(-30 * time.Minute), "2026-11-29T12:00:00Z": now.Add(-30 * time.Minute),
		"2026-11-29T13:00:00+01:00": now.Add(-30 * time.Minute), "2026-11-29": now.Add(-12*time.Hour - 30*time.Minute),
		"2026-11-29 12:00": now.Add(-30 * time.Minute), "12:00": now.Add(-30 * time.Minute), "1795955400000": time.UnixMilli(1795955400000),
	} {
		if got, err := ParseTime(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "2026-13-01", "-x", "25:00"} {
		if got, err := ParseTime(in, now); err == nil {
			t.Errorf("%q = %v, want an error", in, got)
		}
	}
}

func TestTimeModes(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 4, 31, 207e6, time.UTC)
	same, later := at.Add(time.Hour), at.Add(48*time.Hour)
	tests := []struct{ got, want string }{
		{TimeUTC.FormatStamp(at, same), "12:04:31.207Z"},
		{TimeUTC.FormatStamp(at, later), "2026-11-29 12:04:31.207Z"},
		{TimeMs.FormatStamp(at, same), "1795953871207"},
		{TimeRel.FormatStamp(at, same), "1h00m ago"},
		{TimeUTC.FormatDate(at, same), "2026-11-29 12:04:31 UTC"},
		{TimeUTC.FormatStamp(time.Time{}, same), "-"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestMachineValues(t *testing.T) {
	b, err := json.Marshal(struct {
		T, Zero Time
		H       Hash
		Null    Text `json:"null,omitzero"`
		Empty   Text `json:"empty,omitzero"`
		Absent  Text `json:"absent,omitzero"`
	}{T: Time{time.Date(2026, 11, 29, 13, 4, 31, 207999e3, time.FixedZone("", 3600))}, H: 1 << 62, Null: Null(), Empty: String("")})
	want := `{"T":"2026-11-29T12:04:31.207Z","Zero":null,"H":"0x4000000000000000","null":null,"empty":""}`
	if err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	var back Time
	if err := json.Unmarshal([]byte(`"2026-11-29T12:04:31.207Z"`), &back); err != nil || back.UnixMilli() != 1795953871207 {
		t.Errorf("time came back as %v, %v", back, err)
	}
}

func TestShortHash(t *testing.T) {
	for in, want := range map[string]string{
		"0x0000000000000000": "0x0000", "0x8000000000000000": "0x8000", "0x5a5a500000000000": "0x5a5a5", "0x0000000000000001": "0x0000000000000001",
		"0x10000000000000000": "2^64", "": "",
	} {
		if got := shortHash(in); got != want {
			t.Errorf("shortHash(%q) = %q, want %q", in, got, want)
		}
	}
}
