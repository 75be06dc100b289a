package wire

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

// anyTime draws an instant that the wire can carry.
func anyTime(t *rapid.T) Time {
	return TimeOf(time.UnixMilli(rapid.Int64Range(1, 253402300799999).Draw(t, "ms")))
}

func TestU6_instants_come_back_from_any_offset(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		want := anyTime(t)
		offset := time.FixedZone("", rapid.IntRange(-12*60, 14*60).Draw(t, "minutes")*60)
		local := want.In(offset)
		if local.Year() > 9999 || local.Year() < 1 {
			local = want.Time
		}
		text, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back Time
		if err := back.UnmarshalJSON(text); err != nil || back != want {
			t.Fatalf("%s became %s: %v", text, back, err)
		}
		if back, err := ParseTime(local.Format(time.RFC3339Nano)); err != nil || back != want {
			t.Fatalf("%s became %s: %v", local.Format(time.RFC3339Nano), back, err)
		}
	})
}

func TestU6_instants_are_written_in_utc_with_milliseconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"},
		{"2026-01-31T09:30:00.1239999+02:00", "2026-01-31T07:30:00.123Z"},
		{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
		{"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
	} {
		if got, err := ParseTime(c.text); err != nil || got.String() != c.want {
			t.Errorf("%s: %s %v", c.text, got, err)
		}
	}
	if text, err := Marshal(struct {
		A Time `json:"a"`
		B Time `json:"b,omitzero"`
	}{}); err != nil || string(text) != `{"a":null}` {
		t.Errorf("%s %v", text, err)
	}
}

func TestU6_what_is_no_instant_is_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "2026-01-31", "2026-01-31 09:30:00Z", "2026-01-31T09:30:00", "2026-02-30T09:30:00Z", "2026-01-31T9:30:00Z", "2026-01-31T09:30:60Z",
		"1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "1700000000", "2026-01-31T09:30:00,5Z", "2026-01-31T09:30:00 02:00", "2026-01-31T09:30:00+24:00",
	} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q became %s", text, got)
		}
	}
	for _, text := range []string{"17", `"`, `"x"`, "{}"} {
		var got Time
		if err := got.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, out := range []time.Time{time.UnixMilli(-1), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if text, err := TimeOf(out).MarshalJSON(); err == nil {
			t.Errorf("%s was written as %s", out, text)
		}
	}
}
