package webhooksend

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

// answering is a Config whose only receiver answers with raw bytes, on connections in memory, so that time is virtual. It is called after the
// request was read and ends when the connection does.
func answering(t *testing.T, answer func(w io.Writer)) Config {
	var connections sync.WaitGroup
	t.Cleanup(connections.Wait)
	w := &wires{to: func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		connections.Go(func() {
			defer func() { _ = far.Close() }()
			request, err := http.ReadRequest(bufio.NewReader(far))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			answer(far)
		})
		return near, nil
	}}
	return Config{
		Addresses: webhook.Addresses{AllowHTTP: true}, Dial: w.dial,
		Resolver: &names{lists: map[string][][]string{host: {{"93.184.215.14"}}}},
	}
}

// dribble writes a byte a second until the connection ends.
func dribble(w io.Writer) {
	for {
		if _, err := io.WriteString(w, "x"); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// hang waits until the connection ends.
func hang(w io.Writer) { _, _ = w.(net.Conn).Read(make([]byte, 1)) }

func TestE43_an_attempt_ends_after_15_seconds_whatever_is_slow(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	for _, c := range []struct {
		name   string
		answer func(io.Writer)
		status int
	}{
		{"no answer", hang, 0},
		{"a slow status line", dribble, 0},
		{"slow headers", func(w io.Writer) { _, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nX: "); dribble(w) }, 0},
		{"an interim answer alone", func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 103 Early Hints\r\n\r\n")
			hang(w)
		}, 0},
		{"a slow body", func(w io.Writer) { _, _ = io.WriteString(w, head); dribble(w) }, 200},
		{"a body that does not come", func(w io.Writer) { _, _ = io.WriteString(w, head); hang(w) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := opened(t, answering(t, c.answer))
				a := s.Send(t.Context(), request("http://"+host))
				if a.Err != webhook.ErrTimeout || a.Status != c.status || a.Duration != 15*time.Second || webhook.Judge(a).Outcome != webhook.Again {
					t.Errorf("got %+v", a)
				}
			})
		})
	}
}

func TestE43_a_connect_that_hangs_ends_with_the_attempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		w := &wires{to: hangs}
		cfg := answering(t, hang)
		cfg.Dial = w.dial
		s := opened(t, cfg)
		if a := s.Send(t.Context(), request("http://"+host)); a.Err != webhook.ErrTimeout || a.Duration != 15*time.Second {
			t.Errorf("got %+v", a)
		}
	})
}

func TestE43_a_name_server_that_does_not_answer_ends_with_the_attempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := answering(t, hang)
		cfg.Resolver = silent{}
		s := opened(t, cfg)
		if a := s.Send(t.Context(), request("http://"+host)); a.Err != webhook.ErrTimeout || a.Duration != 15*time.Second {
			t.Errorf("got %+v", a)
		}
	})
}

func TestE43_of_an_endless_body_64_kib_are_read(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		s := opened(t, answering(t, func(w io.Writer) {
			if _, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
				return
			}
			for chunk := "400\r\n" + strings.Repeat("x", 0x400) + "\r\n"; ; sent.Add(0x400) {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}))
		a := s.Send(t.Context(), request("http://"+host))
		s.Close()
		synctest.Wait()
		if a.Err != "" || a.Status != 200 || len(a.Body) != webhook.MaxAnswer {
			t.Errorf("got %d, %q, %d bytes", a.Status, a.Err, len(a.Body))
		}
		if n := sent.Load(); n < maxBody-0x400 || n > maxBody+0x4000 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

func TestE43_headers_of_an_answer_are_bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		s := opened(t, answering(t, func(w io.Writer) {
			if _, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n"); err != nil {
				return
			}
			for line := "X-Large: " + strings.Repeat("x", 1024) + "\r\n"; ; sent.Add(1024) {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}))
		if a := s.Send(t.Context(), request("http://"+host)); a.Err != webhook.ErrAnswer || a.Status != 0 {
			t.Errorf("got %+v", a)
		}
		s.Close()
		synctest.Wait()
		if n := sent.Load(); n > maxHeader+0x4000 {
			t.Errorf("%d bytes of headers were taken", n)
		}
	})
}

func TestE43_what_is_no_answer_fails_at_once(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw    string
		status int
		err    string
	}{
		"nothing":                         {"", 0, webhook.ErrAnswer},
		"no HTTP":                         {"220 mail.example ESMTP\r\n", 0, webhook.ErrAnswer},
		"a body that is cut":              {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 200, webhook.ErrAnswer},
		"a chunk that is none":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200, webhook.ErrAnswer},
		"two lengths":                     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 0, webhook.ErrAnswer},
		"a body until the connection end": {"HTTP/1.1 200 OK\r\n\r\nabc", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := opened(t, answering(t, func(w io.Writer) { _, _ = io.WriteString(w, c.raw) }))
				if a := s.Send(t.Context(), request("http://"+host)); a.Err != c.err || a.Status != c.status || a.Duration != 0 {
					t.Errorf("got %+v", a)
				}
			})
		})
	}
}

func TestE43_a_switch_of_protocols_does_not_hold_the_attempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, answering(t, func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			hang(w)
		}))
		if a := s.Send(t.Context(), request("http://"+host)); a.Status != 101 || a.Duration != 0 || webhook.Judge(a).Outcome != webhook.Again {
			t.Errorf("got %+v", a)
		}
	})
}

func TestE42_an_attempt_that_the_sender_gave_up_says_nothing_of_the_receiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, answering(t, hang))
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		if a := s.Send(ctx, request("http://"+host)); a.Err != webhook.ErrInterrupted || a.Duration != time.Second {
			t.Errorf("its caller gave up: got %+v", a)
		}
		answers := make(chan webhook.Answer, 1)
		go func() { answers <- s.Send(t.Context(), request("http://"+host)) }()
		synctest.Wait()
		s.Close()
		if a := <-answers; a.Err != webhook.ErrInterrupted {
			t.Errorf("the sender was closed: got %+v", a)
		}
		if a := s.Send(t.Context(), request("http://"+host)); a.Err != webhook.ErrInterrupted {
			t.Errorf("the sender is closed: got %+v", a)
		}
	})
}

func TestE43_a_deadline_of_the_caller_is_a_time_out_and_so_a_failure(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Second, 15 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := opened(t, answering(t, hang))
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			a := s.Send(ctx, request("http://"+host))
			if a.Err != webhook.ErrTimeout || a.Duration != min(limit, 15*time.Second) || webhook.Judge(a).Outcome != webhook.Again {
				t.Errorf("a deadline of %s: got %+v", limit, a)
			}
		})
	}
}

// silent is a name server that does not answer.
type silent struct{}

func (silent) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
