package webhooksend

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

func TestE45_a_refused_address_is_not_connected_to(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2606:4700::1%lo",
	} {
		w := &wires{}
		s := opened(t, Config{Resolver: &names{lists: map[string][][]string{host: {{addr}}}}, Dial: w.dial})
		if a := s.Send(t.Context(), request("https://"+host)); a.Err != webhook.ErrAddressRefused {
			t.Errorf("%s: got %+v", addr, a)
		}
		if seen := w.connected(); len(seen) != 0 {
			t.Errorf("%s: connected to %v", addr, seen)
		}
	}
}

func TestE45_one_refused_address_among_good_ones_refuses_the_name(t *testing.T) {
	t.Parallel()
	for _, addrs := range [][]string{{"93.184.215.14", "127.0.0.1"}, {"127.0.0.1", "93.184.215.14"}, {"2606:4700:4700::1111", "93.184.215.14", "fd00::1"}} {
		w := &wires{}
		s := opened(t, Config{Resolver: &names{lists: map[string][][]string{host: {addrs}}}, Dial: w.dial})
		if a := s.Send(t.Context(), request("https://"+host)); a.Err != webhook.ErrAddressRefused || len(w.connected()) != 0 {
			t.Errorf("%v: got %+v, connected to %v", addrs, a, w.connected())
		}
	}
}

func TestE45_the_checked_address_is_connected_to_whatever_the_name_resolves_to_afterwards(t *testing.T) {
	t.Parallel()
	inside, touched := canary(t)
	port := portOf(t, inside)
	n := &names{lists: map[string][][]string{host: {{"93.184.215.14"}, {"127.0.0.1"}}}} // rebinding: good when it is checked, this host later
	w := &wires{}
	s := opened(t, Config{Addresses: webhook.Addresses{AllowHTTP: true, Ports: []int{port}}, Resolver: n, Dial: w.dial})
	origin := strings.Replace(inside.URL, "127.0.0.1", host, 1)
	if a := s.Send(t.Context(), request(origin)); a.Err != webhook.ErrConnect {
		t.Errorf("got %+v", a)
	}
	want := netip.AddrPortFrom(netip.MustParseAddr("93.184.215.14"), uint16(port)).String()
	if seen := w.connected(); !slices.Equal(seen, []string{want}) || n.asked != 1 {
		t.Errorf("connected to %v after %d questions, want %s after one", seen, n.asked, want)
	}
	s.cfg.Dial = (&net.Dialer{}).DialContext
	if a := s.Send(t.Context(), request(origin)); a.Err != webhook.ErrAddressRefused || n.asked != 2 {
		t.Errorf("after the name moved: got %+v after %d questions", a, n.asked)
	}
	if touched.Load() != 0 {
		t.Error("this host was connected to")
	}
}

func TestE45_a_kept_connection_is_used_only_for_its_host_and_leads_to_a_checked_address(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	server, cfg := receiver(t, func(http.ResponseWriter, *http.Request) {})
	n := &names{lists: map[string][][]string{host: {{"127.0.0.1"}, {"10.0.0.1"}}, "other.test": {{"10.0.0.1"}}}}
	cfg.Resolver = n
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		if address != server.Listener.Addr().String() {
			t.Errorf("connects to %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s := opened(t, cfg)
	for range 3 {
		if a := s.Send(t.Context(), request(at(t, server))); a.Status != 200 || a.Err != "" {
			t.Fatalf("got %+v", a)
		}
	}
	if connections.Load() != 1 || n.asked != 1 {
		t.Fatalf("%d connections, %d questions for three requests", connections.Load(), n.asked)
	}
	if a := s.Send(t.Context(), request(strings.Replace(at(t, server), host, "other.test", 1))); a.Err != webhook.ErrAddressRefused {
		t.Errorf("another name used the connection: %+v", a)
	}
	s.transport.CloseIdleConnections()
	if a := s.Send(t.Context(), request(at(t, server))); a.Err != webhook.ErrAddressRefused {
		t.Errorf("a new connection to a name that moved to a refused address: got %+v", a)
	}
}

func TestE45_addresses_are_tried_one_after_the_other_and_not_without_end(t *testing.T) {
	t.Parallel()
	w := &wires{}
	many := make([]string, 100)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{93, 184, 215, byte(i)}).String()
	}
	s := opened(t, Config{Resolver: &names{lists: map[string][][]string{host: {many}}}, Dial: w.dial})
	if a := s.Send(t.Context(), request("https://"+host)); a.Err != webhook.ErrConnect {
		t.Errorf("got %+v", a)
	}
	if seen := w.connected(); len(seen) != maxTried || seen[0] != "93.184.215.0:443" || seen[1] != "93.184.215.1:443" {
		t.Errorf("connected to %v", seen)
	}
	server, cfg := receiver(t, func(http.ResponseWriter, *http.Request) {})
	cfg.Resolver = &names{lists: map[string][][]string{host: {{"127.0.0.2", "::ffff:127.0.0.1"}}}} // nothing listens at the first
	if a := opened(t, cfg).Send(t.Context(), request(at(t, server))); a.Status != 200 || a.Err != "" {
		t.Errorf("the second address: got %+v", a)
	}
}

func TestE45_localhost_leads_to_this_host_alone(t *testing.T) {
	t.Parallel()
	w := &wires{}
	s := opened(t, Config{
		Addresses: webhook.Addresses{AllowLoopback: true}, Dial: w.dial,
		Resolver: &names{lists: map[string][][]string{"localhost": {{"93.184.215.14"}, {"127.0.0.1"}}}},
	})
	for _, want := range []string{webhook.ErrAddressRefused, webhook.ErrConnect} {
		if a := s.Send(t.Context(), request("http://LocalHost:8080")); a.Err != want {
			t.Errorf("got %+v, want %s", a, want)
		}
	}
	if seen := w.connected(); !slices.Equal(seen, []string{"127.0.0.1:8080"}) {
		t.Errorf("connected to %v", seen)
	}
}
