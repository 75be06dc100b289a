package settings

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func text(s string) (any, error) { return s, nil }

// masterKey parses 32 bytes as hexadecimal digits or base64. Errors do not contain the value.
func masterKey(s string) (any, error) {
	s = strings.TrimSpace(s)
	if raw, err := hex.DecodeString(s); err == nil && len(raw) == 32 {
		return s, nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if raw, err := base64.RawStdEncoding.DecodeString(plain); err == nil && len(raw) == 32 {
		return s, nil
	}
	return nil, errors.New("not 32 bytes as hexadecimal digits or base64 (generate one with: openssl rand -hex 32)")
}

// hexSecret parses 64 hexadecimal digits.
func hexSecret(s string) (any, error) {
	s = strings.TrimSpace(s)
	if raw, err := hex.DecodeString(s); err != nil || len(raw) != 32 {
		return nil, errors.New("not 64 hexadecimal digits (generate one with: openssl rand -hex 32)")
	}
	return s, nil
}

func toggle(s string) (any, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return nil, errors.New("neither true nor false")
	}
}

func choice(known ...string) func(string) (any, error) {
	return func(s string) (any, error) {
		if !slices.Contains(known, s) {
			return nil, errors.New("not one of " + strings.Join(known, ", "))
		}
		return s, nil
	}
}

func count(least, most int) func(string) (any, error) {
	return func(s string) (any, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, errors.New("not a whole number")
		}
		if n < least || n > most {
			return nil, fmt.Errorf("not between %d and %d", least, most)
		}
		return n, nil
	}
}

// share parses a number between 0 and 1.
func share(s string) (any, error) {
	part, err := strconv.ParseFloat(s, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return nil, errors.New("not a number between 0 and 1")
	}
	return part, nil
}

// units of sizes; a name that ends in another one comes first.
var units = []struct {
	name  string
	bytes int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

func size(least, most int) func(string) (any, error) {
	return func(s string) (any, error) {
		for _, unit := range units {
			digits, found := strings.CutSuffix(s, unit.name)
			if !found {
				continue
			}
			n, err := strconv.Atoi(strings.TrimSpace(digits))
			if err != nil || n < 0 || n > most {
				return nil, errors.New("not a size such as 512KiB or 4MiB")
			}
			if n *= unit.bytes; n < least || n > most {
				return nil, fmt.Errorf("%d bytes, not between %d and %d", n, least, most)
			}
			return n, nil
		}
		return nil, errors.New("not a size such as 512KiB or 4MiB")
	}
}

// span parses a duration within bounds.
func span(least, most string) func(string) (any, error) {
	return func(s string) (any, error) {
		d, err := time.ParseDuration(s)
		if err != nil {
			return nil, errors.New("not a duration such as 30s or 5m")
		}
		low, _ := time.ParseDuration(least) // of the table
		high, _ := time.ParseDuration(most)
		if d < low || d > high {
			return nil, fmt.Errorf("not between %s and %s", least, most)
		}
		return d, nil
	}
}

// keep parses a retention; -1 is forever.
func keep(s string) (any, error) {
	if s == "-1" {
		return time.Duration(-1), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Minute {
		return nil, errors.New("neither -1 nor a duration of at least 1m, such as 72h")
	}
	return d, nil
}

// retention parses how long finished executions are kept, by status.
func retention(s string) (any, error) {
	byStatus := map[string]time.Duration{}
	for part := range strings.SplitSeq(s, ",") {
		status, length, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found || !slices.Contains([]string{"succeeded", "skipped", "cancelled", "failed", "expired"}, status) {
			return nil, fmt.Errorf("%q is not STATUS=DURATION with succeeded, skipped, cancelled, failed or expired", part)
		}
		d, err := keep(length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", status, err)
		}
		byStatus[status] = d.(time.Duration)
	}
	return byStatus, nil
}

func storeURL(s string) (any, error) {
	scheme, rest, _ := strings.Cut(s, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return s, nil
	case scheme == "postgres" || scheme == "postgresql":
		return postgresURL(s)
	default:
		return nil, errors.New("unknown store: use sqlite:PATH or postgres://…")
	}
}

// schemaName parses the name of a schema, as the store accepts it.
func schemaName(s string) (any, error) {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`).MatchString(s) || strings.HasPrefix(s, "pg_") {
		return nil, errors.New("not the name of a schema: use lower-case letters, digits and _")
	}
	return s, nil
}

func postgresURL(s string) (any, error) {
	if u, err := url.Parse(s); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("not a postgres:// URL")
	}
	return s, nil
}

func address(s string) (any, error) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return nil, errors.New("not HOST:PORT")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, errors.New("the port is not between 0 and 65535")
	}
	return s, nil
}

func serverURL(s string) (any, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("not an http:// or https:// URL")
	}
	return strings.TrimSuffix(s, "/"), nil
}

// serverURLs reads the addresses of one or several servers.
func serverURLs(s string) (any, error) {
	var all []string
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		address, err := serverURL(one)
		switch {
		case err != nil && one != strings.TrimSpace(s):
			return nil, fmt.Errorf("%q is %w", one, err)
		case err != nil:
			return nil, err
		case slices.Contains(all, address.(string)):
			return nil, fmt.Errorf("%q is named twice", one)
		}
		all = append(all, address.(string))
	}
	return strings.Join(all, ","), nil
}

func publicURL(s string) (any, error) {
	if u, err := url.Parse(s); err == nil && (u.RawQuery != "" || u.Fragment != "") {
		return nil, errors.New("has a query or a fragment")
	}
	return serverURL(s)
}

func file(s string) (any, error) {
	f, err := os.Open(s) //nolint:gosec // G703: the path is a setting of the user who runs the program
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

// authorities reads certificates into a *x509.CertPool.
func authorities(s string) (any, error) {
	text, err := os.ReadFile(s) //nolint:gosec // G703: as in file
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the file has no certificate in PEM form")
	}
	return pool, nil
}

func networks(s string) (any, error) {
	var all []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if _, err := netip.ParsePrefix(part); err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", part)
		}
		all = append(all, part)
	}
	return all, nil
}

// ranges parses networks into []netip.Prefix.
func ranges(s string) (any, error) {
	texts, err := networks(s)
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for _, text := range texts.([]string) {
		network := netip.MustParsePrefix(text) // networks has parsed it
		if network.Addr().Is4In6() || network != network.Masked() {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		all = append(all, network)
	}
	return all, nil
}

// ports parses numbers of ports.
func ports(s string) (any, error) {
	var all []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q is not a port between 1 and 65535", part)
		}
		all = append(all, n)
	}
	return all, nil
}

func origins(s string) (any, error) {
	var all []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		u, err := url.Parse(part)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("%q is not an origin such as https://app.example.com", part)
		}
		all = append(all, part)
	}
	return all, nil
}
