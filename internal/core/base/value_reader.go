package base

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// ValueReader reads a text that is known to be valid JSON and checks its meaning. path names the current value. Its depth is bounded by the known
// fields: it does not descend into unknown ones.
type ValueReader struct {
	Text []byte
	At   int
	Path []string
}

// Peek skips white space and returns the next byte without consuming it.
func (r *ValueReader) Peek() byte {
	for r.Text[r.At] == ' ' || r.Text[r.At] == '\t' || r.Text[r.At] == '\n' || r.Text[r.At] == '\r' {
		r.At++
	}
	return r.Text[r.At]
}

// Object calls read for each member, positioned at its value, with its key as the last part of the path.
func (r *ValueReader) Object(read func(key string) error) error {
	if r.Peek() != '{' {
		return r.Refuse("must be an object")
	}
	r.At++
	var seen []string
	for r.Peek() != '}' {
		if r.Text[r.At] == ',' {
			r.At++
			r.Peek()
		}
		key := r.string()
		r.Peek() // the colon
		r.At++
		r.Path = append(r.Path, key)
		if slices.Contains(seen, key) {
			return r.Refuse("is given twice")
		}
		seen = append(seen, key)
		if err := read(key); err != nil {
			return err
		}
		r.Path = r.Path[:len(r.Path)-1]
	}
	r.At++
	return nil
}

// Array calls read for each element, positioned at it, with at most limit elements.
func (r *ValueReader) Array(limit int, read func() error) error {
	if r.Peek() != '[' {
		return r.Refuse("must be an array")
	}
	r.At++
	for i := 0; r.Peek() != ']'; i++ {
		if r.Text[r.At] == ',' {
			r.At++
		}
		if i == limit {
			return r.Refuse("has too many entries: at most %d are allowed", limit)
		}
		r.Path = append(r.Path, "["+strconv.Itoa(i)+"]")
		if err := read(); err != nil {
			return err
		}
		r.Path = r.Path[:len(r.Path)-1]
	}
	r.At++
	return nil
}

// string reads a string; the caller has seen its quote.
func (r *ValueReader) string() string {
	begin := r.At
	for r.At++; r.Text[r.At] != '"'; r.At++ {
		if r.Text[r.At] == '\\' {
			r.At++
		}
	}
	r.At++
	raw := r.Text[begin:r.At]
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // cannot fail: the whole text is valid
	return text
}

// Checked reads a string and refuses it if check returns a fault.
func (r *ValueReader) Checked(into *string, check func(string) string) error {
	if r.Peek() != '"' {
		return r.Refuse("must be a string")
	}
	*into = r.string()
	if why := check(*into); why != "" {
		return r.Refuse("%s", why)
	}
	return nil
}

// Word reads a text that is one of those allowed.
func (r *ValueReader) Word(into *string, allowed ...string) error {
	return r.Checked(into, func(text string) string {
		if slices.Contains(allowed, text) {
			return ""
		}
		return "must be one of " + strings.Join(allowed, ", ")
	})
}

// Texts reads a list of texts of at most limit entries.
func (r *ValueReader) Texts(into *[]string, limit int, check func(string) string) error {
	return r.Array(limit, func() error {
		var text string
		if err := r.Checked(&text, check); err != nil {
			return err
		}
		*into = append(*into, text)
		return nil
	})
}

// literal consumes a number, a word or an opening byte.
func (r *ValueReader) literal() string {
	r.Peek()
	begin := r.At
	for r.At < len(r.Text) && !strings.ContainsRune(" \t\r\n,]}", rune(r.Text[r.At])) {
		r.At++
	}
	return string(r.Text[begin:r.At])
}

// Integer reads a number written without fraction and exponent.
func (r *ValueReader) Integer(into *int64, low, high int64) error {
	literal := r.literal()
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil && strings.Trim(literal, "-0123456789") != "" {
		return r.Refuse("must be an integer")
	}
	if err != nil || n < low || n > high {
		return r.Refuse("must be in %d..%d", low, high)
	}
	*into = n
	return nil
}

// Count is integer for an int.
func (r *ValueReader) Count(into *int, low, high int64) error {
	var n int64
	if err := r.Integer(&n, low, high); err != nil {
		return err
	}
	*into = int(n)
	return nil
}

// Number reads a number between two bounds.
func (r *ValueReader) Number(into *float64, low, high float64) error {
	first := r.Peek()
	if first != '-' && (first < '0' || first > '9') {
		return r.Refuse("must be a number")
	}
	n, err := strconv.ParseFloat(r.literal(), 64)
	if err != nil || n < low || n > high {
		return r.Refuse("must be in %v..%v", low, high)
	}
	*into = n
	return nil
}

// RefuseMember returns the error about a member of the object that is being read.
func (r *ValueReader) RefuseMember(name, why string) error {
	r.Path = append(r.Path, name)
	return r.Refuse("%s", why)
}

// Refuse returns the error about the value that is being read.
func (r *ValueReader) Refuse(format string, args ...any) error {
	field := "policy"
	if len(r.Path) > 0 {
		field = strings.ReplaceAll(strings.Join(r.Path, "."), ".[", "[")
	}
	return Errorf(CodeInvalidPolicy, format, args...).WithField(CutText(field, 256))
}
