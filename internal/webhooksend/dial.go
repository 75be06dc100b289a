package webhooksend

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

var (
	errRefused = errors.New("the name has an address that webhooks may not reach")
	errName    = errors.New("the name has no address")
	errConnect = errors.New("no address accepted a connection")
	errURL     = errors.New("the URL is not permitted")
)

// maxTried bounds the addresses of a name that are tried.
const maxTried = 8

// dial resolves a host, checks every address and connects to one of them. The addresses are not looked up again, so an answer of DNS that changes
// after the check has no effect.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errURL
	}
	host = strings.ToLower(host)
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, errURL
	}
	addrs, err := s.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	return s.connect(ctx, network, addrs, uint16(port))
}

// resolve returns the addresses of a host, all of which are permitted. One that is not refuses the host as a whole: such an answer is an attack or a
// name that is meant for an internal network.
func (s *Sender) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else if addrs, err = s.cfg.Resolver.LookupNetIP(ctx, "ip", host); err != nil || len(addrs) == 0 {
		return nil, cmp.Or(ctx.Err(), errName)
	}
	for _, addr := range addrs {
		if !s.cfg.Addresses.Permits(host, addr) {
			return nil, errRefused
		}
	}
	return addrs[:min(len(addrs), maxTried)], nil
}

// connect tries the addresses one after the other. Each but the last gets its share of the time; the last one gets the rest.
func (s *Sender) connect(ctx context.Context, network string, addrs []netip.Addr, port uint16) (net.Conn, error) {
	for i, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), port).String()
		share := Timeout
		if i < len(addrs)-1 {
			share /= time.Duration(len(addrs))
		}
		conn, err := s.connectTo(ctx, network, to, share)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, errConnect
}

func (s *Sender) connectTo(ctx context.Context, network, to string, share time.Duration) (net.Conn, error) {
	if share < Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return s.cfg.Dial(ctx, network, to)
}
