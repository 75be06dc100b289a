package wire

import (
	"encoding"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
)

// list reads an array.
func (d *decoder) list(s *shape, v reflect.Value) {
	if !d.expect("an array", "[") {
		return
	}
	most := d.mostNow()
	v.Set(s.empty)
	start := d.at
	i := 0
	for more := d.enter(']'); more; more = d.another(']') {
		if i == most {
			d.tooMany(most)
			return
		}
		if i == v.Cap() {
			size := int(s.elem.typ.Size())
			more := min(d.moreLike(i, start, size), most-i)
			if !d.room(more * size) {
				return
			}
			v.Grow(more)
		}
		v.SetLen(i + 1)
		faults := len(d.found)
		if d.peek() == 'n' && s.elem.form != formRaw {
			d.expect("an element", "")
		} else {
			d.value(s.elem, v.Index(i))
		}
		if len(d.found) > faults {
			d.foundIn(strconv.Itoa(i), faults)
		}
		d.longIn(strconv.Itoa(i))
		i++
	}
}

// moreLike guesses how many elements of a size follow those that were read since start, from their length; not too many, lest the first
// ones be much smaller than the rest, or stand in one of many short lists.
func (d *decoder) moreLike(read, start, size int) int {
	const unproven = 4 << 10 // bytes that may turn out to be too many
	if read == 0 {
		return 1
	}
	length := max(1, (d.at-start)/read)
	return min((len(d.data)-d.at)/length+1, max(unproven/max(1, size), 2*read))
}

// raw takes the bytes of the next value as they stand; null is absent.
func (d *decoder) raw(v reflect.Value) {
	bytes := d.skip(maxDepth)
	if string(bytes) != "null" {
		v.SetBytes(append([]byte{}, bytes...))
	}
}

// text reads a string that the type parses itself.
func (d *decoder) text(into encoding.TextUnmarshaler) {
	if !d.expect("a string", `"`) {
		return
	}
	text := d.chars()
	if d.broken == nil {
		d.refuse(asError(into.UnmarshalText(text)))
	}
}

// asError is the fault that a type of this package found.
func asError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return invalid("the value cannot be read", "")
}

func (d *decoder) scalar(s *shape, v reflect.Value) {
	switch s.form {
	case formBool:
		if d.expect("a boolean", "tf") {
			v.SetBool(d.word() == "true")
		}
	case formBytes:
		if d.expect("a string of base64", `"`) {
			data, err := fromBase64(d.chars())
			if err != nil {
				d.refuse(invalid("this is not standard base64", "use the alphabet with + and /, and padding"))
			}
			v.SetBytes(data)
		}
	case formInt:
		if n, ok := d.smallInt(); ok {
			v.SetInt(n)
		} else if d.expect("a whole number", "-0123456789") {
			n, err := strconv.ParseInt(string(d.number()), 10, 64)
			d.refuseNumber(err, "expected a whole number, found a fraction or an exponent")
			v.SetInt(n)
		}
	case formFloat:
		if d.expect("a number", "-0123456789") {
			n, err := strconv.ParseFloat(string(d.number()), 64)
			d.refuseNumber(err, "expected a number")
			v.SetFloat(n)
		}
	}
}

func fromBase64(text []byte) ([]byte, error) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	return data[:n], err
}

func (d *decoder) refuseNumber(err error, otherwise string) {
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.refuse(invalid("the number is out of range", ""))
	case err != nil:
		d.refuse(invalid(otherwise, ""))
	}
}
