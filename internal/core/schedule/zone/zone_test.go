package zone

import (
	"archive/zip"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestT13_every_zone_of_the_archive_shows_the_times_of_the_standard_library(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		location, err := time.LoadLocationFromTZData(file.Name, data)
		if err != nil {
			t.Fatal(err)
		}
		z, err := Find(file.Name)
		if err != nil || z.Name() != file.Name {
			t.Fatalf("%s: %v", file.Name, err)
		}
		check := func(at int64) {
			if _, offset := time.Unix(at, 0).In(location).Zone(); int64(offset) != z.Offset(at) {
				t.Fatalf("%s at %s: %d, want %d", file.Name, time.Unix(at, 0).UTC(), z.Offset(at), offset)
			}
		}
		for range 30 {
			check(random.Int64N(Last))
		}
		for year := 1972; year < 2199; year += 4 { // see of
			for hour := range 5 {
				check(time.Date(year, 12, 31, 6*hour, 0, 0, 0, time.UTC).Unix())
			}
		}
		for i := 1; i < z.Periods(); i += 1 + random.IntN(20) {
			check(z.Period(i).Begin - 1)
			check(z.Period(i).Begin)
		}
		seen++
	}
	if seen < 500 || seen != len(Names()) {
		t.Errorf("%d zones, %d names", seen, len(Names()))
	}
}

func TestT13_what_is_not_a_name_is_refused(t *testing.T) {
	t.Parallel()
	for name, near := range map[string]string{
		"Local": "", "local": "", "": "", "+02:00": "", "UTC+2": "", "EST5EDT4,M3.2.0,M11.1.0": "", "../etc/passwd": "", "Europe/": "Europe/",
		"utc": "UTC", "EUROPE/berlin": "Europe/Berlin", "Tokyo": "Asia/Tokyo", strings.Repeat("a", 10_000): "",
	} {
		z, err := Find(name)
		if z != nil || base.CodeOf(err) != base.CodeInvalidSchedule || !strings.Contains(err.(*base.Error).Hint, near) { //nolint:errorlint // it is what Find returns
			t.Errorf("%q: %v, %v", base.CutText(name, 20), z, err)
		}
	}
}

func TestT14_local_times_have_the_offset_of_the_zone(t *testing.T) {
	t.Parallel()
	z, err := Find("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := base.TimeOf(time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC))
	if got := []string{z.Local(at), z.Local(at + 1000), z.Date(at)}; !slices.Equal(got, []string{"2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29"}) {
		t.Error(got)
	}
}

func TestT16_a_forecast_holds_until_the_data_of_the_zone_differ(t *testing.T) {
	t.Parallel()
	now := base.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	z, err := Find("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := z.Forecast(now)
	if len(f.Changes) != 4 || f.Offset != 3600 {
		t.Fatalf("%+v", f)
	}
	changed := func(change func(*Forecast)) Forecast {
		other := f
		other.Changes = slices.Clone(f.Changes)
		change(&other)
		return other
	}
	later := now.Add(300 * base.Day)
	for name, row := range map[string]struct {
		f          Forecast
		now, later bool
	}{
		"the same":                    {f, true, true},
		"a change that moved":         {changed(func(f *Forecast) { f.Changes[3].At += 3600 }), false, false},
		"a change that is over moved": {changed(func(f *Forecast) { f.Changes[0].At -= 3600 }), false, true},
		"another offset":              {changed(func(f *Forecast) { f.Changes[2].Offset = 0 }), false, false},
		"a change that is new":        {changed(func(f *Forecast) { f.Changes = f.Changes[:3] }), false, false},
		"a change that is gone":       {changed(func(f *Forecast) { f.Changes = append(f.Changes, Change{At: f.Until - 1, Offset: 0}) }), false, false},
		"another offset from the start, until the first change": {changed(func(f *Forecast) { f.Offset = 0 }), false, true},
		"a zone that is gone": {changed(func(f *Forecast) { f.Zone = "Europe/Atlantis" }), false, false},
	} {
		if row.f.Holds(now) != row.now || row.f.Holds(later) != row.later {
			t.Errorf("%s: %v now, %v later", name, row.f.Holds(now), row.f.Holds(later))
		}
	}
	if gone := changed(func(f *Forecast) { f.Zone = "Europe/Atlantis" }); !gone.Holds(now.Add(3 * base.Year)) {
		t.Error("nothing follows from a forecast that is over")
	}
}

func TestT16_a_forecast_comes_back(t *testing.T) {
	t.Parallel()
	z, err := Find("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	f := z.Forecast(1_700_000_000_000)
	back, err := DecodeForecast(f.Encode())
	if err != nil || back.Zone != f.Zone || back.From != f.From || back.Until != f.Until || back.Offset != f.Offset || !slices.Equal(back.Changes, f.Changes) {
		t.Errorf("%+v, want %+v: %v", back, f, err)
	}
	for _, bad := range []string{"", "{}", "null", `{"v":2,"zone":"UTC","from":1,"until":2}`, `{"v":1,"zone":"UTC","from":2,"until":2}`, `{"v":1,"zone":"UTC","from":1,"until":9,"changes":[{"at":5},{"at":5}]}`} {
		if _, err := DecodeForecast([]byte(bad)); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzForecast(f *testing.F) {
	f.Add([]byte(`{"v":1,"zone":"UTC","from":1,"until":9,"changes":[{"at":5,"offset":60}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := DecodeForecast(data)
		if err != nil {
			if base.CodeOf(err) != base.CodeCorruption {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeForecast(known.Encode())
		if err != nil || again.From != known.From || !slices.Equal(again.Changes, known.Changes) {
			t.Fatalf("%+v is read as %+v: %v", known, again, err)
		}
		known.Holds(base.Time(known.From))
	})
}
