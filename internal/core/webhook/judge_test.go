package webhook

import (
	"fmt"
	"testing"
	"time"
)

func TestE43_an_answer_of_each_class_means_one_thing(t *testing.T) {
	t.Parallel()
	again := Verdict{}
	slow := Verdict{Slow: true}
	for status := range 600 {
		want := again
		switch {
		case status >= 200 && status <= 299:
			want = Verdict{Outcome: Delivered}
		case status == 410:
			want = Verdict{Outcome: Gone}
		case status == 429, status == 502, status == 503, status == 504:
			want = slow
		}
		if got := Judge(Answer{Status: status}); got != want {
			t.Errorf("%d: got %+v, want %+v", status, got, want)
		}
	}
}

func TestE43_a_good_status_without_a_whole_answer_in_time_is_no_success(t *testing.T) {
	t.Parallel()
	if got := Judge(Answer{Status: 200, Err: ErrTimeout}); got.Outcome != Again || got.Slow {
		t.Errorf("got %+v", got)
	}
	if got := Judge(Answer{Err: ErrAddressRefused}); got != (Verdict{}) {
		t.Errorf("a refused address: got %+v", got)
	}
}

func TestE43_retry_after_counts_with_429_and_503_and_up_to_a_day(t *testing.T) {
	t.Parallel()
	for status, counts := range map[int]bool{429: true, 503: true, 500: false, 502: false, 504: false, 200: false, 301: false, 410: false} {
		want := time.Duration(0)
		if counts {
			want = time.Hour
		}
		if got := Judge(Answer{Status: status, RetryAfter: time.Hour}).Wait; got != want {
			t.Errorf("%d: waits %s, want %s", status, got, want)
		}
	}
	if got := Judge(Answer{Status: 429, RetryAfter: 48 * time.Hour}).Wait; got != 24*time.Hour {
		t.Errorf("waits %s", got)
	}
	if got := Judge(Answer{Status: 429, RetryAfter: -time.Hour}).Wait; got != 0 {
		t.Errorf("waits %s", got)
	}
}

func TestE43_retry_after_is_seconds_or_a_date(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour,
		"-5": 0, "1.5": 0, "": 0, "soon": 0, "1e3": 0, "+5": 0,
		"Thu, 19 Nov 2026 12:01:00 GMT": time.Minute, "Thursday, 19-Nov-26 12:01:00 GMT": time.Minute, "Thu Nov 19 12:01:00 2026": time.Minute,
		"Thu, 19 Nov 2026 11:59:00 GMT": 0, "Wed, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour, "Mon, 01 Jan 0001 00:00:00 GMT": 0,
	} {
		if got := ParseRetryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestE43_ten_attempts_at_the_stated_times_with_up_to_a_fifth_on_top(t *testing.T) {
	t.Parallel()
	want := []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	for failures, pause := range want {
		for jitter, extra := range map[float64]time.Duration{0: 0, 0.5: pause / 10, 1: pause / 5, -3: 0, 7: pause / 5} {
			if got, again := Delay(failures, jitter); got != pause+extra || !again {
				t.Errorf("after %d failures with jitter %v: %s %v, want %s", failures, jitter, got, again, pause+extra)
			}
		}
	}
	for _, failures := range []int{10, 11, 1 << 30} {
		if pause, again := Delay(failures, 0); again || pause != 0 {
			t.Errorf("after %d failures it is tried again", failures)
		}
	}
	if pause, again := Delay(-1, 0.5); pause != 0 || !again {
		t.Errorf("before any attempt: %s %v", pause, again)
	}
}

func TestE43_what_the_receiver_asks_for_is_obeyed_when_longer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failures int
		wait     time.Duration
		want     time.Duration
		again    bool
	}{
		{1, 0, 5 * time.Second, true}, {1, time.Minute, time.Minute, true}, {2, time.Minute, 5 * time.Minute, true}, {9, 24 * time.Hour, 24 * time.Hour, true}, {10, time.Hour, 0, false},
	} {
		got, again := Verdict{Wait: c.wait}.Delay(c.failures, 0)
		if got != c.want || again != c.again {
			t.Errorf("%s: got %s %v", fmt.Sprint(c), got, again)
		}
	}
}
