package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestE45_urls_that_may_be_registered(t *testing.T) {
	t.Parallel()
	lan := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	for _, c := range []struct {
		url string
		a   Addresses
	}{
		{"https://example.com", Addresses{}},
		{"https://example.com/hooks?token=a%20b&c=%E2%82%AC", Addresses{}},
		{"HTTPS://Example.COM:443/", Addresses{}},
		{"https://xn--bcher-kva.example/x", Addresses{}},
		{"https://a_b.example.com/", Addresses{}},
		{"https://intranet/", Addresses{}}, // its addresses are checked at each connect
		{"https://93.184.215.14/", Addresses{}},
		{"https://[2606:4700:4700::1111]/", Addresses{}},
		{"https://example.com:8443/", Addresses{Ports: []int{8080, 8443}}},
		{"https://example.com/", Addresses{Ports: []int{8443}}},
		{"http://example.com/", Addresses{AllowHTTP: true}},
		{"http://example.com:8080/", Addresses{AllowHTTP: true, Ports: []int{8080}}},
		{"https://10.1.2.3/", Addresses{Allow: lan}},
		{"https://[fd00:1::7]/", Addresses{Allow: lan}},
		{"https://[::ffff:10.1.2.3]/", Addresses{Allow: lan}},
		{"http://127.0.0.1:9000/", Addresses{AllowLoopback: true}},
		{"http://localhost:9000/", Addresses{AllowLoopback: true}},
		{"http://hooks.localhost/", Addresses{AllowLoopback: true}},
		{"http://[::1]:9000/", Addresses{AllowLoopback: true}},
		{"https://localhost/", Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		{"https://example.com/" + strings.Repeat("a", MaxURL-len("https://example.com/")), Addresses{}},
	} {
		if err := c.a.CheckURL(c.url); err != nil {
			t.Errorf("%s with %+v: %v", c.url, c.a, err)
		}
	}
}

func TestE45_urls_that_are_refused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "example.com", "//example.com/", "/hooks", "https:example.com", "https://", "https:///x", "https://:443/", "ftp://example.com/", "file:///etc/passwd",
		"gopher://example.com/", "javascript:alert(1)", "http://example.com/", "HTTP://example.com/",
		"https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/", "https://:@example.com/", "https://example.com@evil.example/",
		"https://example.com/#", "https://example.com/#fragment", "https://example.com#@evil.example/",
		"https://example.com:80/", "https://example.com:22/", "https://example.com:0/", "https://example.com:65536/", "https://example.com:-1/", "https://example.com:+443/",
		"https://example.com:/", "https://example.com:0443/", "https://example.com:443:443/", "https://example.com:4294967739/",
		"https://example.com./", "https://127.0.0.1./", "https://example..com/", "https://.example.com/", "https://-a.example/", "https://a-.example/",
		"https://exa mple.com/", "https://example.com/a b", "https://example.com/\n", "https://example.com/\r\nHost: evil", "https://example.com/\x00", "https://example.com/\x7f",
		"https://b\u00fccher.example/", "https://example\u3002com/", "https://\u2460\u2461\u2466.0.0.1/", "https://%31%32%37.0.0.1/", "https://example.com%2f@evil.example/",
		`https://example.com\@evil.example/`, `https:\\example.com/`, "https://example.com\\.evil.example/",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 126) + "ab/",
		"https://example.com/" + strings.Repeat("a", MaxURL-len("https://example.com/")+1), "https://example.com/" + strings.Repeat("a", 1<<20),
	} {
		wantCode(t, Addresses{}.CheckURL(url), base.CodeInvalidWebhookURL, "url")
	}
}

func TestE45_an_address_in_an_odd_spelling_is_refused_whatever_is_permitted(t *testing.T) {
	t.Parallel()
	everything := Addresses{AllowHTTP: true, AllowLoopback: true, Ports: []int{443}, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	for _, host := range []string{
		"0x7f.1", "0x7f000001", "0X7F.0.0.1", "127.0.0.0x1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "2130706433", "127.0.0.01", "127.000.000.001", "1", "0", "0x", "256.1.1.1",
		"1.2.3.4.5", "127.0.0.1.", "[127.0.0.1]", "[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[::ffff:7f00:1%25x]", "[v1.x]", "[]", "[::1]x", "::1", "[::127.0.0.256]", "[1::2::3]",
		"foo.0x1", "foo.123", "127.0.0.1%00.example.com",
	} {
		wantCode(t, everything.CheckURL("https://"+host+"/"), base.CodeInvalidWebhookURL, "url")
	}
}

// The first and last address of every refused range, in the forms that resolvers and gateways take for it.
var refusedRanges = [][2]string{
	{"0.0.0.0", "0.255.255.255"},
	{"10.0.0.0", "10.255.255.255"},
	{"100.64.0.0", "100.127.255.255"},
	{"127.0.0.0", "127.255.255.255"},
	{"169.254.0.0", "169.254.255.255"},
	{"172.16.0.0", "172.31.255.255"},
	{"192.0.0.0", "192.0.0.255"},
	{"192.168.0.0", "192.168.255.255"},
	{"198.18.0.0", "198.19.255.255"},
	{"224.0.0.0", "239.255.255.255"},
	{"240.0.0.0", "255.255.255.255"},
}

// embeddings write an IPv4 address into an IPv6 one: mapped, NAT64, 6to4 and ISATAP.
func embeddings(v4 netip.Addr) map[string]netip.Addr {
	b := v4.As4()
	at := func(prefix string, offset int) netip.Addr {
		raw := netip.MustParseAddr(prefix).As16()
		copy(raw[offset:], b[:])
		return netip.AddrFrom16(raw)
	}
	return map[string]netip.Addr{
		"mapped": at("::ffff:0:0", 12), "NAT64": at("64:ff9b::", 12), "6to4": at("2002::1", 2),
		"ISATAP": at("2a00:1::5efe:0:0", 12), "global ISATAP": at("2a00:1::200:5efe:0:0", 12),
	}
}

func TestE45_every_refused_range_in_every_form(t *testing.T) {
	t.Parallel()
	var none Addresses
	for _, r := range refusedRanges {
		first, last := netip.MustParseAddr(r[0]), netip.MustParseAddr(r[1])
		for _, addr := range []netip.Addr{first, first.Next(), last.Prev(), last} {
			if !none.Refused(addr) {
				t.Errorf("%s is not refused", addr)
			}
			for form, inner := range embeddings(addr) {
				if !none.Refused(inner) {
					t.Errorf("%s, the %s form of %s, is not refused", inner, form, addr)
				}
			}
		}
	}
	for _, text := range []string{
		"::", "::1", "::127.0.0.1", "::93.184.215.14", "::ffff:0:93.184.215.14", "fc00::", "fc00::1", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::", "fe80::1", "febf:ffff::1",
		"fec0::1", "feff::1", "ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9b:1::", "64:ff9b:1::93.184.215.14", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
		"100::1", "2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "1fff:ffff::1", "4000::1", "5f00::1",
		"2606:4700:4700::1111%eth0", "fe80::1%lo",
	} {
		if !none.Refused(netip.MustParseAddr(text)) {
			t.Errorf("%s is not refused", text)
		}
		if !strings.Contains(text, "%") {
			wantCode(t, none.CheckURL("https://["+text+"]/"), base.CodeInvalidWebhookURL, "url")
		}
	}
	if !none.Refused(netip.Addr{}) {
		t.Error("no address is not refused")
	}
}

func TestE45_what_lies_beside_the_refused_ranges_is_reached(t *testing.T) {
	t.Parallel()
	var none Addresses
	for _, text := range []string{
		"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"191.255.255.255", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
	} {
		addr := netip.MustParseAddr(text)
		if none.Refused(addr) {
			t.Errorf("%s is refused", addr)
		}
		for form, inner := range embeddings(addr) {
			if none.Refused(inner) {
				t.Errorf("%s, the %s form of %s, is refused", inner, form, addr)
			}
		}
	}
	for _, text := range []string{"2606:4700:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2a00:1450:4001::1", "2000::1"} {
		if none.Refused(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
}

func TestE45_named_ranges_are_opened_and_no_others(t *testing.T) {
	t.Parallel()
	a := Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}}
	for text, refused := range map[string]bool{
		"10.1.0.0": false, "10.1.255.255": false, "::ffff:10.1.2.3": false, "64:ff9b::10.1.2.3": false, "fd00:1::5": false,
		"10.0.255.255": true, "10.2.0.0": true, "::ffff:10.2.0.0": true, "64:ff9b::10.2.0.0": true, "fd00:2::5": true, "127.0.0.1": true, "fd00:1::5%eth0": true,
	} {
		if got := a.Refused(netip.MustParseAddr(text)); got != refused {
			t.Errorf("%s: refused %v", text, got)
		}
	}
	local := Addresses{AllowLoopback: true}
	for text, refused := range map[string]bool{"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false, "10.0.0.1": true, "0.0.0.0": true, "::": true} {
		if got := local.Refused(netip.MustParseAddr(text)); got != refused {
			t.Errorf("with loopback, %s: refused %v", text, got)
		}
	}
}

func TestE45_the_exemption_of_loopback_covers_no_other_address(t *testing.T) {
	t.Parallel()
	a := Addresses{AllowLoopback: true}
	target, err := ParseURL("http://LOCALHOST:9000/")
	if err != nil || target != (Target{Scheme: "http", Host: "localhost", Port: 9000}) {
		t.Fatalf("%+v: %v", target, err)
	}
	if a.Permits(target.Host, netip.MustParseAddr("93.184.215.14")) {
		t.Error("localhost that resolves to a public address is reached without https on a port of its choice")
	}
	if !a.Permits(target.Host, netip.MustParseAddr("::1")) {
		t.Error("localhost is not reached")
	}
	for _, url := range []string{"http://example.com/", "https://example.com:9000/", "https://10.0.0.1/", "https://localhost.example.com:9000/"} {
		wantCode(t, a.CheckURL(url), base.CodeInvalidWebhookURL, "url")
	}
	for _, url := range []string{"https://localhost/", "https://a.localhost/", "https://127.0.0.1/", "https://[::1]/"} {
		wantCode(t, Addresses{AllowHTTP: true}.CheckURL(url), base.CodeInvalidWebhookURL, "url")
	}
}

func FuzzURL(f *testing.F) {
	for _, url := range []string{"https://example.com:443/a?b", "https://[::ffff:127.0.0.1]/", "http://0x7f.1/", "https://a@b/#c"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if err := (Addresses{}).CheckURL(url); err != nil {
			wantCode(t, err, base.CodeInvalidWebhookURL, "url")
			return
		}
		target, err := ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		if target.Scheme != "https" || target.Port != 443 || target.Host == "" {
			t.Errorf("%q leads to %+v", url, target)
		}
		if addr, err := netip.ParseAddr(target.Host); err == nil && (Addresses{}).Refused(addr) {
			t.Errorf("%q leads to %s", url, addr)
		}
	})
}
