package base

import (
	"encoding/base64"
	"testing"
)

func TestL134_U43_text_of_bytes_has_one_spelling(t *testing.T) {
	t.Parallel()
	text := base64.RawURLEncoding.EncodeToString([]byte{0xfb, 0xff, 1, 2})
	if raw, err := DecodeURLText(text); err != nil || string(raw) != "\xfb\xff\x01\x02" {
		t.Errorf("%q: %x, %v", text, raw, err)
	}
	for what, other := range map[string]string{
		"a line end": text[:3] + "\n" + text[3:], "a carriage return": text + "\r", "padding": text + "==", "bits that do not count": text[:len(text)-1] + "h",
		"the other alphabet": base64.RawStdEncoding.EncodeToString([]byte{0xfb, 0xff, 1, 2}), "a blank": text + " ",
	} {
		if raw, err := DecodeURLText(other); err == nil {
			t.Errorf("%s: %q is read as %x", what, other, raw)
		}
	}
}
