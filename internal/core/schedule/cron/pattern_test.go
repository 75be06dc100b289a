package cron

import (
	"testing"
	"time"
)

func TestT6_days_are_those_of_the_calendar_of_the_standard_library(t *testing.T) {
	t.Parallel()
	for n := int64(-400); n < 230*366; n++ {
		want := time.Unix(n*86_400, 0).UTC()
		year, month, day := civil(n)
		if year != want.Year() || month != int(want.Month()) || day != want.Day() || weekday(n) != int(want.Weekday()) || dayNumber(year, month, day) != n {
			t.Fatalf("day %d is %d-%d-%d, weekday %d, number %d; want %s", n, year, month, day, weekday(n), dayNumber(year, month, day), want)
		}
		if length := time.Date(year, time.Month(month+1), 0, 0, 0, 0, 0, time.UTC).Day(); monthLength(year, month) != length {
			t.Fatalf("%d-%d has %d days, want %d", year, month, monthLength(year, month), length)
		}
	}
}
