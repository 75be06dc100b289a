package jsonx

import (
	"encoding"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"time"
)

// list reads an array.
func (d *Decoder) list(s *Shape, v reflect.Value) {
	if !d.Expect("an array", "[") {
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
			size := int(s.Elem.Type.Size())
			more := min(d.moreLike(i, start, size), most-i)
			if !d.room(more * size) {
				return
			}
			v.Grow(more)
		}
		v.SetLen(i + 1)
		faults := len(d.found)
		if d.peek() == 'n' && s.Elem.Form != FormRaw {
			d.Expect("an element", "")
		} else {
			d.value(s.Elem, v.Index(i))
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
func (d *Decoder) moreLike(read, start, size int) int {
	const unproven = 4 << 10 // bytes that may turn out to be too many
	if read == 0 {
		return 1
	}
	length := max(1, (d.at-start)/read)
	return min((len(d.data)-d.at)/length+1, max(unproven/max(1, size), 2*read))
}

// raw takes the bytes of the next value as they stand; null is absent.
func (d *Decoder) raw(v reflect.Value) {
	bytes := d.skip(maxDepth)
	if string(bytes) != "null" {
		v.SetBytes(append([]byte{}, bytes...))
	}
}

// Text reads the next value, which must be a string, by the method of a type.
func (d *Decoder) Text(into encoding.TextUnmarshaler) {
	if !d.Expect("a string", `"`) {
		return
	}
	text := d.chars()
	if d.broken == nil {
		d.Refuse(AsError(into.UnmarshalText(text)))
	}
}

func (d *Decoder) scalar(s *Shape, v reflect.Value) {
	switch s.Form {
	case FormBool:
		if d.Expect("a boolean", "tf") {
			v.SetBool(d.word() == "true")
		}
	case FormBytes:
		if d.Expect("a string of base64", `"`) {
			data, err := fromBase64(d.chars())
			if err != nil {
				d.Refuse(Invalid("this is not standard base64", "use the alphabet with + and /, and padding"))
			}
			v.SetBytes(data)
		}
	case FormInt:
		v.SetInt(d.integer())
	case FormDuration:
		v.SetInt(int64(Duration(d.integer())))
	case FormTime:
		d.time(v.Addr().Interface().(*time.Time))
	case FormFloat:
		if d.Expect("a number", "-0123456789") {
			n, err := strconv.ParseFloat(string(d.number()), 64)
			d.refuseNumber(err, "expected a number")
			v.SetFloat(n)
		}
	}
}

// integer reads a whole number; 0 of what is not one.
func (d *Decoder) integer() int64 {
	if n, ok := d.smallInt(); ok {
		return n
	}
	if !d.Expect("a whole number", "-0123456789") {
		return 0
	}
	n, err := strconv.ParseInt(string(d.number()), 10, 64)
	d.refuseNumber(err, "expected a whole number, found a fraction or an exponent")
	return n
}

// time reads an instant.
func (d *Decoder) time(into *time.Time) {
	if !d.Expect("a string", `"`) {
		return
	}
	text := d.chars()
	if d.broken != nil {
		return
	}
	read, err := ParseTime(string(text))
	d.Refuse(AsError(err))
	*into = read
}

func fromBase64(text []byte) ([]byte, error) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	return data[:n], err
}

func (d *Decoder) refuseNumber(err error, otherwise string) {
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.Refuse(Invalid("the number is out of range", ""))
	case err != nil:
		d.Refuse(Invalid(otherwise, ""))
	}
}
