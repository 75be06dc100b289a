package tracing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// scripted is a collector in virtual time: it answers the nth request by the nth answer, and after the last one always by that.
type scripted struct {
	answers []func(*http.Request) (*http.Response, error)
	begin   time.Time
	at      []time.Duration // when requests came
}

func (c *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.at = append(c.at, time.Since(c.begin))
	return c.answers[min(len(c.at), len(c.answers))-1](r)
}

// says answers with a status, and with Retry-After unless that is empty.
func says(status int, after string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) == 0 {
			return nil, errors.New("no spans")
		}
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Retry-After": {after}}, Body: io.NopCloser(strings.NewReader("")),
		}, nil
	}
}

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// against is a sender to such a collector.
func against(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*sender, *scripted) {
	t.Helper()
	s := sendingTo(t, "http://collector", nil)
	c := &scripted{answers: answers, begin: time.Now()}
	s.client.Transport = c
	return s, c
}

func TestU216_a_busy_collector_is_asked_again(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			s, c := against(t, says(status, ""), says(status, ""), says(200, ""))
			if err := s.ExportSpans(t.Context(), one()); err != nil || len(c.at) != 3 {
				t.Fatal(status, c.at, err)
			}
			first, second := c.at[1], c.at[2]-c.at[1]
			if first < firstPause/2 || first > firstPause*3/2 || second < firstPause || second > firstPause*3 {
				t.Errorf("%d: pauses of %s and %s", status, first, second)
			}
		})
	}
}

func TestU216_a_collector_says_when_it_is_asked_again(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		date := time.Now().Add(55 * time.Second).UTC().Format(http.TimeFormat)
		s, c := against(t, says(503, "20"), says(429, date), says(200, ""))
		if err := s.ExportSpans(t.Context(), one()); err != nil || len(c.at) != 3 || c.at[1] != 20*time.Second || c.at[2] != 55*time.Second {
			t.Error(c.at, err)
		}
	})
}

func TestU216_spans_are_tried_for_a_minute_at_most(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := against(t, says(503, ""))
		fails(t, s.ExportSpans(t.Context(), one()), "given up: the collector answered Service Unavailable")
		if took := time.Since(c.begin); took > enough || len(c.at) < 3 {
			t.Error(c.at, took)
		}
		for _, after := range []string{"61", "18446744073709551615"} {
			s, c = against(t, says(503, after))
			fails(t, s.ExportSpans(t.Context(), one()), "given up")
			if took := time.Since(c.begin); took != 0 || len(c.at) != 1 {
				t.Error("it waits for nothing:", c.at, took)
			}
		}
		s, c = against(t, says(503, "20"))
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		fails(t, s.ExportSpans(short, one()), "given up")
		if took := time.Since(c.begin); took != 0 {
			t.Error("it waits for nothing:", took)
		}
	})
}

func TestU216_a_refusal_is_not_tried_again(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 404, 413, 500, 501} {
		synctest.Test(t, func(t *testing.T) {
			s, c := against(t, says(status, "1"), says(200, ""))
			if err := s.ExportSpans(t.Context(), one()); err == nil || len(c.at) != 1 || time.Since(c.begin) != 0 {
				t.Error(status, c.at, err)
			}
		})
	}
}

func TestU216_a_request_without_an_answer_ends_and_is_made_again(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := against(t, silent, says(200, ""))
		err := s.ExportSpans(t.Context(), one())
		if err != nil || len(c.at) != 2 || c.at[1] < defaultTimeout+firstPause/2 || c.at[1] > defaultTimeout+firstPause*3/2 {
			t.Error(c.at, err)
		}
	})
}

func TestU216_stopping_ends_a_request_and_a_pause(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){"a request": silent, "a pause": says(503, "50")} {
		synctest.Test(t, func(t *testing.T) {
			s, c := against(t, answer)
			ended := make(chan error)
			go func() { ended <- s.ExportSpans(context.Background(), one()) }()
			synctest.Wait()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || len(c.at) != 1 || time.Since(c.begin) != 0 {
				t.Error(name, c.at, err)
			}
			if err := s.ExportSpans(t.Context(), one()); !errors.Is(err, errStopped) || len(c.at) != 1 {
				t.Error("afterwards:", c.at, err)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error("again:", err)
			}
		})
	}
}

func TestU216_a_context_that_ends_ends_a_pause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := against(t, says(503, "50"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := s.ExportSpans(ctx, one())
		if !errors.Is(err, context.Canceled) || time.Since(c.begin) != time.Second {
			t.Error(c.at, err)
		}
		fails(t, err, "Service Unavailable")
	})
}

func TestU216_the_exporter_stops_in_time_while_the_collector_is_busy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := Start(t.Context(), Config{Endpoint: "http://collector", Sample: 1, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c := &scripted{answers: []func(*http.Request) (*http.Response, error){says(503, "20")}, begin: time.Now()}
		e.sender.client.Transport = c
		_, span := e.Tracer().Start(t.Context(), api.SpanStart{Name: "last"})
		span.End("")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait() // nothing goes on behind it
		if took := time.Since(c.begin); took != time.Second || len(c.at) != 1 {
			t.Error(took, c.at)
		}
	})
}

func TestU216_when_a_collector_wants_to_be_asked_again(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999999999999": 0, "9999999999": 24 * time.Hour,
		"Wed, 02 Jan 2030 03:05:05 GMT": time.Minute, "Wed, 02 Jan 2030 03:00:00 GMT": 0,
	}
	for value, want := range cases {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is %s", value, got)
		}
	}
}
