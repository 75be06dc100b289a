package api

import (
	"fmt"
	"log/slog"

	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Token is the credential of a signal or of a link. Printing, logging and encoding show only its signing key; Reveal returns the
// text. The zero Token is no token.
type Token struct{ keyring.Token }

// TokenOf returns the token with this text.
func TokenOf(text string) Token { return Token{keyring.TokenOf(text)} }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.Reveal() == "" }

// withheld replaces an address that contains a token.
const withheld = "<redacted>"

func withhold(address *string) {
	if *address != "" {
		*address = withheld
	}
}

// printableWaitpoint is a waitpoint for printing: without methods, and without its address. Its token hides itself (W29).
type printableWaitpoint Waitpoint

func (w Waitpoint) printable() printableWaitpoint {
	withhold(&w.CallbackURL)
	return printableWaitpoint(w)
}

// Format prints the waitpoint without its token and address, for every verb.
func (w Waitpoint) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), w.printable())
}

// LogValue returns the waitpoint without its token and address.
func (w Waitpoint) LogValue() slog.Value { return slog.AnyValue(w.printable()) }

// printableLink is a link for printing: without methods, and without its address.
type printableLink ApprovalLink

func (l ApprovalLink) printable() printableLink {
	withhold(&l.URL)
	return printableLink(l)
}

// Format prints the link without its address, for every verb.
func (l ApprovalLink) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), l.printable())
}

// LogValue returns the link without its address.
func (l ApprovalLink) LogValue() slog.Value { return slog.AnyValue(l.printable()) }
