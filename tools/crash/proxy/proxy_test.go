package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/proxy"
)

// echo answers each line with "echo " and the line, and counts what it received.
type echo struct {
	net.Listener
	served sync.WaitGroup
	heard  chan string
}

func newEcho(t *testing.T, network, address string) *echo {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: listener, heard: make(chan string, 100)}
	e.served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.served.Go(func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					e.heard <- lines.Text()
					fmt.Fprintln(conn, "echo", lines.Text())
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return e
}

// start runs a proxy in front of the server.
func start(t *testing.T, e *echo) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if e != nil {
		p.Forward(e.Addr().Network(), e.Addr().String())
	}
	return p
}

// line is a connection of lines.
type line struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) *line {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &line{conn, bufio.NewReader(conn)}
}

func (l *line) say(t *testing.T, text string) {
	t.Helper()
	if _, err := fmt.Fprintln(l, text); err != nil {
		t.Fatal(err)
	}
}

func (l *line) hear(t *testing.T, want string) {
	t.Helper()
	got, err := l.in.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

// silent reports whether nothing is readable. It can only find too little, never too much: a slow machine makes it weaker, not wrong.
func (l *line) silent(t *testing.T) {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if text, err := l.in.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v", text, err)
	}
	_ = l.SetReadDeadline(time.Time{})
}

// refused connects and reads the end of the connection, which may come with the attempt.
func refused(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		return
	}
	t.Cleanup(func() { _ = conn.Close() })
	(&line{conn, bufio.NewReader(conn)}).over(t)
}

// over reads the end of the connection.
func (l *line) over(t *testing.T) {
	t.Helper()
	if text, err := l.in.ReadString('\n'); err == nil {
		t.Fatalf("heard %q on a connection that should be over", text)
	}
}

func TestA_proxy_forwards_both_directions_also_to_a_unix_socket(t *testing.T) {
	t.Parallel()
	for _, e := range []*echo{newEcho(t, "tcp", "127.0.0.1:0"), newEcho(t, "unix", filepath.Join(t.TempDir(), "s"))} {
		p := start(t, e)
		l := dial(t, p)
		l.say(t, "hello")
		l.hear(t, "echo hello")
		if p.Carried() != int64(len("hello\n")+len("echo hello\n")) {
			t.Errorf("%d bytes were carried", p.Carried())
		}
	}
}

func TestThe_address_stays_while_the_server_behind_it_changes(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	refused(t, p) // there is no server yet
	for range 2 {
		e := newEcho(t, "tcp", "127.0.0.1:0")
		p.Forward("tcp", e.Addr().String())
		l := dial(t, p)
		l.say(t, "a")
		l.hear(t, "echo a")
		if <-e.heard != "a" {
			t.Fatal("another server answered")
		}
	}
	p.Forward("tcp", "")
	refused(t, p)
}

func TestA_cut_ends_connections_and_the_next_ones_work(t *testing.T) {
	t.Parallel()
	p := start(t, newEcho(t, "tcp", "127.0.0.1:0"))
	l := dial(t, p)
	l.say(t, "a")
	l.hear(t, "echo a")
	if n := p.Cut(); n != 2 {
		t.Fatalf("%d sides were cut", n)
	}
	l.over(t)
	l = dial(t, p)
	l.say(t, "b")
	l.hear(t, "echo b")
	p.Set(proxy.Refuse)
	refused(t, p)
}

func TestA_half_open_connection_is_silent_in_both_directions_and_then_continues(t *testing.T) {
	t.Parallel()
	e := newEcho(t, "tcp", "127.0.0.1:0")
	p := start(t, e)
	l := dial(t, p)
	l.say(t, "a")
	l.hear(t, "echo a")
	<-e.heard
	p.Set(proxy.HalfOpen)
	l.say(t, "b")
	l.silent(t)
	if len(e.heard) != 0 {
		t.Fatal("the server heard something")
	}
	p.Set(proxy.Pass)
	l.hear(t, "echo b")
}

func TestA_deaf_connection_delivers_commands_and_loses_their_answers(t *testing.T) {
	t.Parallel()
	e := newEcho(t, "tcp", "127.0.0.1:0")
	p := start(t, e)
	l := dial(t, p)
	p.Set(proxy.Deaf)
	l.say(t, "a")
	if <-e.heard != "a" {
		t.Fatal("the server heard something else")
	}
	l.silent(t)
	p.Set(proxy.Pass)
	l.over(t)
}

func TestSlow_and_late_bytes_arrive_whole(t *testing.T) {
	t.Parallel()
	for _, mode := range []proxy.Mode{proxy.Slow, proxy.Delay} {
		p := start(t, newEcho(t, "tcp", "127.0.0.1:0"))
		p.Set(mode)
		l := dial(t, p)
		text := strings.Repeat("x", 1000)
		began := time.Now()
		l.say(t, text)
		l.hear(t, "echo "+text)
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("%s took %s", mode, took)
		}
	}
}

func TestClose_ends_connections_that_are_held(t *testing.T) {
	t.Parallel()
	e := newEcho(t, "tcp", "127.0.0.1:0")
	p, err := proxy.New()
	if err != nil {
		t.Fatal(err)
	}
	p.Forward("tcp", e.Addr().String())
	l := dial(t, p)
	p.Set(proxy.HalfOpen)
	l.say(t, "a")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(l); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
