package webhook

import (
	"net/netip"
	"strings"
)

// maxHost and maxLabel bound names in DNS.
const (
	maxHost  = 253
	maxLabel = 63
)

// Local reports whether a name is localhost or ends with it: such names mean this host (RFC 6761).
func Local(host string) bool { return host == "localhost" || strings.HasSuffix(host, ".localhost") }

// checkHost checks the host of a URL, in lower case and without brackets, and returns its address if it is one. An address has one permitted
// spelling: resolvers read 0x7f.1, 017700000001 and 2130706433 as addresses too, and no name may look like them.
func checkHost(host string, bracketed bool) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Zone() != "":
		return addr, refuseURL("has an address with a zone", "use an address that other hosts know")
	case err == nil && addr.Is6() == bracketed:
		return addr, nil
	case bracketed || strings.Contains(host, ":"):
		return addr, refuseURL("has a host that is no address", "write an IPv6 address in brackets")
	case strings.HasSuffix(host, "."):
		return addr, refuseURL("has a host that ends with a dot", "remove the dot")
	case endsInNumber(host):
		return addr, refuseURL("has a host that is no address", "write an IPv4 address as four decimal numbers without leading zeros")
	case !hostName(host):
		return addr, refuseURL("has a host that is no name", "a host has letters, digits, hyphens and dots; write other letters in the form with xn--")
	}
	return netip.Addr{}, nil
}

// endsInNumber reports whether the last label of a host is a number, decimal or hexadecimal: no top-level domain is one.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// hostName reports whether a host is labels of letters, digits, hyphens and underscores.
func hostName(host string) bool {
	if len(host) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
