package cron

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// refusal returns the refusal of a text, nil if it is none.
func refusal(t *testing.T, err error) *base.Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *base.Error
	if !errors.As(err, &e) || e.Code != base.CodeInvalidSchedule {
		t.Fatalf("%v is not invalid_schedule", err)
	}
	return e
}

func TestT7_TC2_every_refusal_names_its_place(t *testing.T) {
	t.Parallel()
	for text, place := range map[string]int{
		"":                            0,
		"   ":                         0,
		strings.Repeat("*", 257):      0,
		"* * * *":                     0,
		"* * * * * * *":               0,
		"60 * * * *":                  0,
		"* 24 * * *":                  2,
		"* * 0 * *":                   4,
		"* * 32 * *":                  4,
		"* * * 13 *":                  6,
		"* * * 0 *":                   6,
		"* * * * 8":                   8,
		"60 * * * * *":                0,
		"5-2 * * * *":                 2,
		"* * * * fri-sun":             12,
		"*/0 * * * *":                 2,
		"*/60 * * * *":                2,
		"1,,2 * * * *":                2,
		",1 * * * *":                  0,
		"1, * * * *":                  2,
		"1- * * * *":                  2,
		"1/ * * * *":                  2,
		"1-2-3 * * * *":               3,
		"* * L/2 * *":                 5,
		"* * 1W-5 * *":                6,
		"* * 1-5W * *":                7,
		"* * 1-L * *":                 6,
		"* * L-0 * *":                 6,
		"* * L-31 * *":                6,
		"* * LW/2 * *":                6,
		"* * LL * *":                  5,
		"* * W * *":                   4,
		"* * * * L":                   8,
		"* * * * 5L/2":                10,
		"* * * * 1-5L":                11,
		"* * * * 5#0":                 10,
		"* * * * 5#6":                 10,
		"* * * * 5#1-2":               11,
		"* L * * *":                   2,
		"* * * * 5W":                  9,
		"H * * * *":                   0,
		"* H * * *":                   2,
		"a * * * *":                   0,
		"* * * foo *":                 6,
		"* * * janu *":                9,
		"* * *\n* *":                  0,
		"00001 * * * *":               0,
		"-1 * * * *":                  0,
		"+1 * * * *":                  0,
		"1.5 * * * *":                 1,
		"é * * * *":                   0,
		"@reboot":                     0,
		" @daily x":                   8,
		"@every":                      6,
		"@every 1h 2":                 10,
		"@every 0s":                   7,
		"@every 3651d":                7,
		"@every 1h/1h":                10,
		"@every 1h/":                  10,
		"@every 1":                    8,
		"@every h":                    7,
		"@every 1m1h":                 10,
		"@every 1h1h":                 10,
		"@every 1.5h":                 8,
		"@every 1ms":                  9,
		"@every 1234567890s":          7,
		"@every -1h":                  7,
		"TZ=UTC * * * * *":            0,
		"CRON_TZ=UTC 0 0 * * *":       0,
		"  cron_tz=Asia/Tokyo @daily": 2,
	} {
		_, err := Parse(text)
		e := refusal(t, err)
		if e == nil {
			t.Errorf("%q is accepted", text)
		} else if e.Details[DetailPosition] != place {
			t.Errorf("%q is at fault at %v, want %d: %v", text, e.Details[DetailPosition], place, err)
		}
	}
	_, err := Parse("TZ=UTC * * * * *")
	if e := refusal(t, err); !strings.Contains(e.Hint, "timezone") {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestT6_T9_texts_and_their_canonical_form(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"* * * * *":                   "* * * * *",
		" 0\t0  1 1 * ":               "0 0 1 1 *",
		"0 0 0 1 1 *":                 "0 0 1 1 *",
		"30 0 0 1 1 *":                "30 0 0 1 1 *",
		"*/5 ? ? ? ?":                 "*/5 * * * *",
		"5/10 * * JAN-mar Mon,fri":    "5/10 * * 1-3 1,5",
		"0 0 l,L-3,15w,Lw * 5l,fri#2": "0 0 L,L-3,15W,LW * 5L,5#2",
		"00 0 01 * 7":                 "0 0 1 * 7",
		"*/59 */23 */30 */11 */7":     "*/59 */23 */30 */11 */7",
		"@yearly":                     "0 0 1 1 *",
		"@Annually":                   "0 0 1 1 *",
		"@monthly":                    "0 0 1 * *",
		"@weekly":                     "0 0 * * 0",
		"@daily":                      "0 0 * * *",
		"@midnight":                   "0 0 * * *",
		"@hourly":                     "0 * * * *",
		"@every 90s":                  "@every 1m30s",
		"@EVERY 25h":                  "@every 1d1h",
		"@every 1d/2h30m":             "@every 1d/2h30m",
		"@every 1h0m/0s":              "@every 1h",
		"@every 3650d":                "@every 3650d",
	} {
		line, err := Parse(text)
		if refusal(t, err) != nil || line.String() != want {
			t.Errorf("%q is %q, want %q: %v", text, line, want, err)
			continue
		}
		if again, err := Parse(line.String()); err != nil || !reflect.DeepEqual(line, again) {
			t.Errorf("%q read again is %+v, not %+v: %v", text, again, line, err)
		}
	}
}

func TestT6_marks_of_days(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		day, week   string
		month, days string // of 2026 or 2028
	}{
		{"L", "*", "2026-02", "28"},
		{"L", "*", "2028-02", "29"},
		{"L-1,L", "*", "2026-04", "29,30"},
		{"L-30", "*", "2026-04", ""},
		{"L-30", "*", "2026-05", "1"},
		{"31", "*", "2026-04", ""},
		{"31W", "*", "2026-04", ""},
		{"15W", "*", "2026-02", "16"}, // a Sunday
		{"14W", "*", "2026-02", "13"}, // a Saturday
		{"1W", "*", "2026-02", "2"},   // a Sunday
		{"1W", "*", "2026-08", "3"},   // a Saturday, and the Friday before is in July
		{"31W", "*", "2026-05", "29"}, // a Sunday, and the Monday after is in June
		{"LW", "*", "2026-02", "27"},
		{"LW", "*", "2026-05", "29"},
		{"*", "5L", "2026-02", "27"},
		{"*", "sunL", "2026-05", "31"},
		{"*", "7#1", "2026-02", "1"},
		{"*", "5#5", "2026-02", ""},
		{"*", "5#5", "2026-05", "29"},
		{"*", "0,6", "2026-02", "1,7,8,14,15,21,22,28"},
		{"*", "6-7", "2026-02", "1,7,8,14,15,21,22,28"},
		{"*/15", "*", "2026-02", "1,16"},
		{"13", "fri", "2026-04", "3,10,13,17,24"},
		{"*/1", "fri", "2026-04", "3,10,17,24"},
		{"?", "1", "2026-04", "6,13,20,27"},
	} {
		line, err := Parse("0 0 " + row.day + " * " + row.week)
		if refusal(t, err) != nil {
			t.Fatal(err)
		}
		month, _ := time.Parse("2006-01", row.month)
		var got []string
		end := month.AddDate(0, 1, 0).Unix()
		for r, ok := line.Pattern.Next(month.Unix(), end); ok; r, ok = line.Pattern.Next(r+1, end) {
			got = append(got, time.Unix(r, 0).UTC().Format("2"))
		}
		if strings.Join(got, ",") != row.days {
			t.Errorf("%s %s in %s: %v, want %s", row.day, row.week, row.month, got, row.days)
		}
	}
}

func TestT10_fields_of_a_calendar(t *testing.T) {
	t.Parallel()
	c := Calendar{DayOfMonth: "13", DayOfWeek: "fri", Year: "2026-2028/2", Comment: "x"}
	p, err := c.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != "0 0 0 13 * 5 2026-2028/2" {
		t.Error(got)
	}
	year := func(y int) int64 { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Unix() }
	if r, ok := p.Next(year(2027), year(2029)); !ok || time.Unix(r, 0).UTC().Format(time.DateOnly) != "2028-10-13" {
		t.Error(r, ok)
	}
	if r, ok := p.Next(year(2029), year(2200)); ok {
		t.Error(r)
	}
	if r, ok := p.Prev(year(2028)-1, 0); !ok || time.Unix(r, 0).UTC().Format(time.DateOnly) != "2026-11-13" {
		t.Error(r, ok)
	}
	e, err := (&Calendar{Hour: "5"}).ParseExcept()
	if err != nil || e.String() != "* * 5 * * * *" {
		t.Error(e, err)
	}
	for field, bad := range map[string]Calendar{
		"second": {Second: "60"}, "minute": {Minute: "x"}, "hour": {Hour: "1,"}, "day_of_month": {DayOfMonth: "0"}, "month": {Month: "13"},
		"day_of_week": {DayOfWeek: "8"}, "year": {Year: "2200"}, "comment": {Comment: strings.Repeat("x", 257)},
	} {
		_, err := bad.Parse()
		if e := refusal(t, err); e == nil || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err = (&Calendar{Year: strings.Repeat("1970,", 60) + "1970"}).Parse()
	if e := refusal(t, err); e == nil || e.Field != "year" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 0 l,L-3,15w * 5l,fri#2", "*/5 * * jan-mar 1-5", "@every 1h30m/5m", "@daily", "1 2 3 4 5 6", "TZ=UTC * * * * *", "* * 31 2 *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, err := Parse(text)
		if err != nil {
			if e := refusal(t, err); e.Details[DetailPosition].(int) > len(text) {
				t.Fatalf("%q is at fault at %v", text, e.Details)
			}
			return
		}
		again, err := Parse(line.String())
		if err != nil || !reflect.DeepEqual(line, again) {
			t.Fatalf("%q is written as %q, which is %+v: %v", text, line, again, err)
		}
		if p := line.Pattern; p != nil {
			const begin, end = 1_700_000_000, 1_900_000_000
			if r, ok := p.Next(begin, end); ok && (!p.Matches(r) || r < begin || r >= end) {
				t.Fatalf("%q: %d is no reading of it", text, r)
			}
			if r, ok := p.Prev(end, begin); ok && (!p.Matches(r) || r > end || r < begin) {
				t.Fatalf("%q: %d is no reading of it", text, r)
			}
		}
	})
}
