package keyring

import "fmt"

// concealed holds bytes that must not be shown by accident. Its methods hide them from fmt, JSON and logs. fmt prints unexported fields without
// calling methods and follows one pointer when the verb is wrong, so the bytes are stored behind two pointers and fmt prints an address. The zero
// value holds nothing.
type concealed struct{ bytes **[]byte }

func conceal(bytes []byte) concealed {
	held := &bytes
	return concealed{&held}
}

// reveal returns the bytes, nil if there are none.
func (c concealed) reveal() []byte {
	if c.bytes == nil {
		return nil
	}
	return **c.bytes
}

// IsZero reports whether it holds nothing.
func (c concealed) IsZero() bool { return c.bytes == nil }

// String hides the value.
func (c concealed) String() string {
	if c.IsZero() {
		return "<none>"
	}
	return redacted
}

// Format hides the value for every verb.
func (c concealed) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// MarshalText hides the value.
func (c concealed) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// redacted is printed in place of a secret.
const redacted = "<redacted>"
