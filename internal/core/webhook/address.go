package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// MaxURL is the size of a URL in bytes.
const MaxURL = 2048

// Addresses states which targets webhooks may reach. The zero value permits https on port 443 to public addresses.
type Addresses struct {
	AllowHTTP     bool           // also http, and port 80 with it
	Ports         []int          // permitted besides 443
	Allow         []netip.Prefix // ranges that are permitted although they are refused by default
	AllowLoopback bool           // also this host, by http or https on any port, as the development server does
}

// Target is where a URL leads.
type Target struct {
	Scheme string // http or https
	Host   string // a name in lower case, or an address without brackets
	Port   int
	Addr   netip.Addr // of a host that is written as an address
}

// CheckURL checks the URL of an endpoint. Errors: invalid_webhook_url with the field url.
func (a Addresses) CheckURL(raw string) error {
	t, err := ParseURL(raw)
	if err != nil {
		return err
	}
	return a.CheckTarget(t)
}

// ParseURL reads a URL in the only form that is permitted under any settings. Errors: invalid_webhook_url with the field url.
func ParseURL(raw string) (Target, error) {
	u, err := parseURL(raw)
	if err != nil {
		return Target{}, err
	}
	port, err := portOf(u)
	if err != nil {
		return Target{}, err
	}
	host := strings.ToLower(u.Hostname())
	addr, err := checkHost(host, strings.HasPrefix(u.Host, "["))
	if err != nil {
		return Target{}, err
	}
	return Target{Scheme: u.Scheme, Host: host, Port: port, Addr: addr}, nil
}

// parseURL refuses what two programs may read in two ways: a sender and its proxy, or this check and the sender.
func parseURL(raw string) (*url.URL, error) {
	if why := base.CheckGraphic(raw, MaxURL); why != "" {
		return nil, refuseURL(why, "write names with other letters in their form with xn--, and other characters as %XX")
	}
	if strings.ContainsAny(raw, `\#`) {
		return nil, refuseURL("must have no fragment and no backslash", "remove # and what follows it")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, refuseURL("cannot be parsed", exampleURL) // the error of url.Parse repeats the URL
	case u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" || u.Host == "":
		return nil, refuseURL("must begin with https:// and a host", exampleURL)
	case u.User != nil:
		return nil, refuseURL("must have no user name or password", "requests are signed: receivers verify webhook-signature")
	}
	return u, nil
}

const exampleURL = "an example is https://example.com/hooks/flowfabric"

// portOf is the port of a URL, written or implied.
func portOf(u *url.URL) (int, error) {
	text := u.Port()
	switch {
	case text == "" && strings.HasSuffix(u.Host, ":"):
		return 0, refuseURL("has an empty port", "remove the colon")
	case text == "" && u.Scheme == "http":
		return portHTTP, nil
	case text == "":
		return portHTTPS, nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || text[0] == '0' {
		return 0, refuseURL("has a port that is none", "a port is a number from 1 to 65535")
	}
	return port, nil
}

const (
	portHTTP  = 80
	portHTTPS = 443
)

// CheckTarget applies the settings to a target. What a name leads to is checked at each connect. Errors: invalid_webhook_url with the field url.
func (a Addresses) CheckTarget(t Target) error {
	local := Local(t.Host) || t.Addr.IsValid() && t.Addr.Unmap().IsLoopback()
	if local && a.AllowLoopback {
		return nil
	}
	if Local(t.Host) && a.loopbackRefused() || t.Addr.IsValid() && a.Refused(t.Addr) {
		return refuseURL("leads to an address that webhooks may not reach", "use a public address; the setting webhook-allow-cidr of the server can permit others")
	}
	if t.Scheme == "http" && !a.AllowHTTP {
		return refuseURL("must begin with https://", "the setting webhook-allow-http of the server can permit http")
	}
	if t.Port == portHTTPS || t.Scheme == "http" && t.Port == portHTTP || slices.Contains(a.Ports, t.Port) {
		return nil
	}
	return refuseURL("has a port that webhooks may not use", "use port 443; the setting webhook-ports of the server can permit others")
}

// loopbackRefused reports whether no loopback address is permitted, so that a name of this host leads nowhere.
func (a Addresses) loopbackRefused() bool {
	return a.Refused(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && a.Refused(netip.IPv6Loopback())
}

// Permits reports whether a request to a host may be sent to an address. The names of this host lead to loopback addresses alone, so that the
// exemption of the development server covers nothing else.
func (a Addresses) Permits(host string, addr netip.Addr) bool {
	if Local(host) && !addr.Unmap().IsLoopback() {
		return false
	}
	return !a.Refused(addr)
}

func refuseURL(why, hint string) error {
	return base.Errorf(base.CodeInvalidWebhookURL, "%s", why).WithField("url").WithHint("%s", hint)
}
