package core

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// valueReader reads a text that is known to be valid JSON and checks its meaning. path names the current value. Its depth is bounded by the known
// fields: it does not descend into unknown ones.
type valueReader struct {
	text []byte
	at   int
	path []string
}

// peek skips white space and returns the next byte without consuming it.
func (r *valueReader) peek() byte {
	for r.text[r.at] == ' ' || r.text[r.at] == '\t' || r.text[r.at] == '\n' || r.text[r.at] == '\r' {
		r.at++
	}
	return r.text[r.at]
}

// object calls read for each member, positioned at its value, with its key as the last part of the path.
func (r *valueReader) object(read func(key string) error) error {
	if r.peek() != '{' {
		return r.refuse("must be an object")
	}
	r.at++
	var seen []string
	for r.peek() != '}' {
		if r.text[r.at] == ',' {
			r.at++
			r.peek()
		}
		key := r.string()
		r.peek() // the colon
		r.at++
		r.path = append(r.path, key)
		if slices.Contains(seen, key) {
			return r.refuse("is given twice")
		}
		seen = append(seen, key)
		if err := read(key); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.at++
	return nil
}

// array calls read for each element, positioned at it, with at most limit elements.
func (r *valueReader) array(limit int, read func() error) error {
	if r.peek() != '[' {
		return r.refuse("must be an array")
	}
	r.at++
	for i := 0; r.peek() != ']'; i++ {
		if r.text[r.at] == ',' {
			r.at++
		}
		if i == limit {
			return r.refuse("has too many entries: at most %d are allowed", limit)
		}
		r.path = append(r.path, "["+strconv.Itoa(i)+"]")
		if err := read(); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.at++
	return nil
}

// string reads a string; the caller has seen its quote.
func (r *valueReader) string() string {
	begin := r.at
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	raw := r.text[begin:r.at]
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // cannot fail: the whole text is valid
	return text
}

// checked reads a string and refuses it if check returns a fault.
func (r *valueReader) checked(into *string, check func(string) string) error {
	if r.peek() != '"' {
		return r.refuse("must be a string")
	}
	*into = r.string()
	if why := check(*into); why != "" {
		return r.refuse("%s", why)
	}
	return nil
}

// word reads a text that is one of those allowed.
func (r *valueReader) word(into *string, allowed ...string) error {
	return r.checked(into, func(text string) string {
		if slices.Contains(allowed, text) {
			return ""
		}
		return "must be one of " + strings.Join(allowed, ", ")
	})
}

// texts reads a list of texts of at most limit entries.
func (r *valueReader) texts(into *[]string, limit int, check func(string) string) error {
	return r.array(limit, func() error {
		var text string
		if err := r.checked(&text, check); err != nil {
			return err
		}
		*into = append(*into, text)
		return nil
	})
}

// literal consumes a number, a word or an opening byte.
func (r *valueReader) literal() string {
	r.peek()
	begin := r.at
	for r.at < len(r.text) && !strings.ContainsRune(" \t\r\n,]}", rune(r.text[r.at])) {
		r.at++
	}
	return string(r.text[begin:r.at])
}

// integer reads a number written without fraction and exponent.
func (r *valueReader) integer(into *int64, low, high int64) error {
	literal := r.literal()
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil && strings.Trim(literal, "-0123456789") != "" {
		return r.refuse("must be an integer")
	}
	if err != nil || n < low || n > high {
		return r.refuse("must be in %d..%d", low, high)
	}
	*into = n
	return nil
}

// count is integer for an int.
func (r *valueReader) count(into *int, low, high int64) error {
	var n int64
	if err := r.integer(&n, low, high); err != nil {
		return err
	}
	*into = int(n)
	return nil
}

// number reads a number between two bounds.
func (r *valueReader) number(into *float64, low, high float64) error {
	first := r.peek()
	if first != '-' && (first < '0' || first > '9') {
		return r.refuse("must be a number")
	}
	n, err := strconv.ParseFloat(r.literal(), 64)
	if err != nil || n < low || n > high {
		return r.refuse("must be in %v..%v", low, high)
	}
	*into = n
	return nil
}

// refuseMember returns the error about a member of the object that is being read.
func (r *valueReader) refuseMember(name, why string) error {
	r.path = append(r.path, name)
	return r.refuse("%s", why)
}

// refuse returns the error about the value that is being read.
func (r *valueReader) refuse(format string, args ...any) error {
	field := "policy"
	if len(r.path) > 0 {
		field = strings.ReplaceAll(strings.Join(r.path, "."), ".[", "[")
	}
	return Errorf(CodeInvalidPolicy, format, args...).WithField(cutText(field, 256))
}
