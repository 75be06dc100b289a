package api

import (
	"fmt"
	"log/slog"

	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Token is the credential of a signal or of a link. Printed, logged or encoded it shows its key and not itself; Reveal gives the
// text. The zero Token is none.
type Token struct{ keyring.Token }

// TokenOf is the token of a text.
func TokenOf(text string) Token { return Token{keyring.TokenOf(text)} }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.Reveal() == "" }

// withheld stands where an address with a token in it would.
const withheld = "<redacted>"

func withhold(address *string) {
	if *address != "" {
		*address = withheld
	}
}

// printableWaitpoint is a waitpoint that may be printed: without methods, and without its address. Its token hides itself (W29).
type printableWaitpoint Waitpoint

func (w Waitpoint) printable() printableWaitpoint {
	withhold(&w.CallbackURL)
	return printableWaitpoint(w)
}

// Format prints the waitpoint without its token and address, whatever the verb.
func (w Waitpoint) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), w.printable())
}

// LogValue is the waitpoint without its token and address.
func (w Waitpoint) LogValue() slog.Value { return slog.AnyValue(w.printable()) }

// printableLink is a link that may be printed: without methods, and without its address.
type printableLink ApprovalLink

func (l ApprovalLink) printable() printableLink {
	withhold(&l.URL)
	return printableLink(l)
}

// Format prints the link without its address, whatever the verb.
func (l ApprovalLink) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), l.printable())
}

// LogValue is the link without its address.
func (l ApprovalLink) LogValue() slog.Value { return slog.AnyValue(l.printable()) }
