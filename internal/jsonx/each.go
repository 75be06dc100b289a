package jsonx

import "reflect"

// Each is a list that is read one element after the other, all into the same memory: what Do is given is good until it returns.
type Each[T any] struct {
	Do func(*T)
}

// ReadJSON reads the elements. Of a text that breaks off, Do has seen the elements before.
func (e *Each[T]) ReadJSON(d *Decoder) {
	if !d.Expect("an array", "[") {
		return
	}
	var one, none T
	v := reflect.ValueOf(&one).Elem()
	s := shapeOf(v.Type())
	for more := d.enter(']'); more; more = d.another(']') {
		one = none
		if d.value(s, v); d.broken != nil {
			return
		}
		e.Do(&one)
	}
}

// AppendEach adds a list of n elements that are made one after the other.
func AppendEach[T any](text []byte, n int, element func(i int) T) ([]byte, error) {
	text = append(text, '[')
	begin := len(text)
	var one T // one for all
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		one = element(i)
		var err error
		if text, err = Append(text, &one); err != nil {
			return nil, err
		}
		if i == 0 {
			text = reserve(text, (len(text)-begin+1)*(n-1))
		}
	}
	return append(text, ']'), nil
}
