package core

import "fmt"

// concealed holds bytes that nobody may see by accident. Its methods hide them from fmt, JSON and logs. fmt prints unexported
// fields without asking for methods, and follows one pointer when the verb is wrong; so the bytes stand behind two, and what it
// finds there is an address. The zero value holds nothing.
type concealed struct{ bytes **[]byte }

func conceal(bytes []byte) concealed {
	held := &bytes
	return concealed{&held}
}

// reveal is the bytes; nil when there are none.
func (c concealed) reveal() []byte {
	if c.bytes == nil {
		return nil
	}
	return **c.bytes
}

// IsZero reports whether nothing is held.
func (c concealed) IsZero() bool { return c.bytes == nil }

// String hides what is held.
func (c concealed) String() string {
	if c.IsZero() {
		return "<none>"
	}
	return redacted
}

// Format hides what is held, whatever the verb.
func (c concealed) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// MarshalText hides what is held.
func (c concealed) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// redacted stands where a secret would.
const redacted = "<redacted>"
