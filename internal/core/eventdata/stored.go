package eventdata

// Parts returns the stored form: the shape, which many events share, the values of fixed form, and the texts. Shape and Of reassemble
// them.
func (d Data) Parts() (shape, values string, texts []string) { return d.shape, d.values, d.texts }

// Of returns the data with these Parts. Stored parts must have been cut by their shape.
func Of(shape, values string, texts []string) Data {
	return Data{shape: shape, values: values, texts: texts}
}

// Shape is a stored shape, parsed once for all the events that share it. The zero value is the shape of no data.
type Shape struct {
	text  string
	fixed []dataKind // of the fields that have values
	texts int        // number of texts outside of lists
}

// ParseShape parses the shape of Parts. ok is false if no Builder can have written it.
func ParseShape(text string) (s Shape, ok bool) {
	if text == "" {
		return Shape{}, true
	}
	s.text, s.fixed = text, make([]dataKind, 0, len(text)/2)
	r := Data{shape: text}.reader()
	for r.next() {
		switch r.kind {
		case dataText, dataJSON, dataWhole:
			s.texts++
		case dataTexts, dataNumber, dataMoment, dataUUID, dataID:
			s.fixed = append(s.fixed, r.kind)
		}
	}
	return s, !r.bad && r.depth == 0
}

// Text returns the text that was parsed.
func (s *Shape) Text() string { return s.text }

// Cut returns how many of the stored bytes are the values of an event of this shape, and how many texts go with them. ok is false if no Builder
// can have written such values.
func (s *Shape) Cut(stored string) (values, texts int, ok bool) {
	r := dataReader{values: stored, at: s.texts}
	for _, r.kind = range s.fixed {
		r.skip()
	}
	return len(stored) - len(r.values), r.at, !r.bad
}
