package webhook

import (
	"net/netip"
	"slices"
)

// refused4 are the ranges of IPv4 that webhooks do not reach: this network, private, shared, loopback, link-local, protocol assignments,
// benchmarks, multicast, reserved and broadcast.
var refused4 = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"),
}

// Of IPv6 only global unicast addresses are reached: everything outside of global6 is refused, with the unspecified and loopback address, fc00::/7,
// fe80::/10, ff00::/8, IPv4-compatible (::/96), translated (::ffff:0:0:0/96) and local NAT64 addresses (64:ff9b:1::/48). So are the protocol
// assignments, with Teredo (2001::/32), which hides an IPv4 address.
var (
	global6   = netip.MustParsePrefix("2000::/3")
	refused6  = netip.MustParsePrefix("2001::/23")
	sixToFour = netip.MustParsePrefix("2002::/16")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
)

// Refused reports whether no request may go to an address. An IPv6 address that embeds an IPv4 address is refused if that one is. An address with
// a zone and the zero Addr are always refused.
func (a Addresses) Refused(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return true
	}
	addr = addr.Unmap()
	if a.AllowLoopback && addr.IsLoopback() || within(a.Allow, addr) {
		return false
	}
	if addr.Is4() {
		return within(refused4, addr)
	}
	if refused6.Contains(addr) || !global6.Contains(addr) && !nat64.Contains(addr) {
		return true
	}
	inner, found := embedded(addr)
	return found && a.Refused(inner)
}

// embedded is the IPv4 address that a gateway sends packets for an IPv6 address to: NAT64 (RFC 6052), 6to4 (RFC 3056) and ISATAP (RFC 5214).
func embedded(addr netip.Addr) (netip.Addr, bool) {
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:])), true
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}

func within(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(addr) })
}
