package stream

import (
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// treeReader makes an object of a text that checkObject accepted, of at most MaxNesting objects and arrays inside one another. The values share the text.
type treeReader struct {
	text   string
	at     int
	stored bool // the text is that of a document: it has no name twice in an object, and values are read when they are changed
}

// readObject reads a patch. Of members with one name the last counts, at the place of the first.
func readObject(text []byte) *object {
	r := treeReader{text: string(text)}
	r.peek()
	return r.object()
}

// storedMember is an estimate of the bytes of a member in a document.
const storedMember = 32

// readStored reads the text of a document, or of an object in one. The values of its members are left as texts.
func readStored(text string) *object {
	r := treeReader{text: text, stored: true}
	r.peek()
	return r.object()
}

// peek passes white space and returns the next byte.
func (r *treeReader) peek() byte {
	for {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
}

func (r *treeReader) object() *object {
	o := &object{}
	if r.stored {
		o.members = make([]member, 0, len(r.text)/storedMember+1)
	}
	r.at++
	for r.peek() != '}' {
		if r.text[r.at] == ',' {
			r.at++
			r.peek()
		}
		name := r.name()
		r.peek()
		r.at++ // the colon
		if v := r.value(); r.stored {
			o.push(name, v)
		} else {
			o.set(name, v)
		}
	}
	r.at++
	return o
}

func (r *treeReader) value() value {
	switch c := r.peek(); {
	case r.stored && (c == '{' || c == '['):
		return value{text: r.pass()}
	case c == '{':
		return value{object: r.object()}
	case c == '[':
		return value{text: string(r.array(nil))}
	default:
		return value{text: r.scalar()}
	}
}

// array appends an array to a text, without white space and with each name in an object once.
func (r *treeReader) array(to []byte) []byte {
	to = append(to, '[')
	r.at++
	for r.peek() != ']' {
		if r.text[r.at] == ',' {
			to = append(to, ',')
			r.at++
		}
		switch r.peek() {
		case '{':
			to = r.object().appendText(to)
		case '[':
			to = r.array(to)
		default:
			to = append(to, r.scalar()...)
		}
	}
	r.at++
	return append(to, ']')
}

// pass returns an object or array as it stands.
func (r *treeReader) pass() string {
	begin, open := r.at, 0
	for {
		switch r.text[r.at] {
		case '"':
			r.string()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if r.at++; open == 0 {
			return r.text[begin:r.at]
		}
	}
}

// scalar returns a string, a number or a word as it is written.
func (r *treeReader) scalar() string {
	if r.text[r.at] == '"' {
		return r.string()
	}
	begin := r.at
	for {
		switch r.text[r.at] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return r.text[begin:r.at]
		}
		r.at++
	}
}

// string returns a string as it is written, with its quotes.
func (r *treeReader) string() string {
	begin := r.at
	for r.at++; ; r.at++ {
		switch r.text[r.at] {
		case '"':
			r.at++
			return r.text[begin:r.at]
		case '\\':
			r.at++
		}
	}
}

// name returns the name of a member, with quotes, in the one form that every way to write it has in common.
func (r *treeReader) name() string {
	written := r.string()
	if strings.IndexByte(written, '\\') < 0 {
		return written
	}
	var name string
	_ = json.Unmarshal([]byte(written), &name) // cannot fail: the whole text is valid
	return string(base.AppendQuoted(nil, name))
}
