package wire

import "reflect"

// each is a list of an answer that is read one element after the other, all into the same memory: what do is given is good until it
// returns.
type each[T any] struct {
	do func(*T)
}

// readStrict reads the elements. Of a text that breaks off, do has seen what stood before.
func (e *each[T]) readStrict(d *decoder) {
	if !d.expect("an array", "[") {
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
		e.do(&one)
	}
}

// ReadClaimAnswer reads the JSON of a ClaimAnswer.
func ReadClaimAnswer(text []byte, task func(*Task)) (ClaimFields, error) {
	var answer struct {
		Tasks each[Task] `json:"tasks"`
		ClaimFields
	}
	answer.Tasks.do = task
	err := DecodeAnswer(text, &answer)
	return answer.ClaimFields, err
}

// ReadItems reads the JSON of Items, and tells how many there were.
func ReadItems[T any](text []byte, item func(i int, item *Item[T])) (n int, err error) {
	var answer struct {
		Items  each[Item[T]] `json:"items"`
		Failed int           `json:"failed"`
	}
	answer.Items.do = func(one *Item[T]) {
		item(n, one)
		n++
	}
	err = DecodeAnswer(text, &answer)
	return n, err
}
