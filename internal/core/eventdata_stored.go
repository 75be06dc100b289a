package core

// Parts returns the stored form: the shape, which many events share, the values of fixed form, and the texts. EventShape and EventDataOf reassemble
// them.
func (d EventData) Parts() (shape, values string, texts []string) { return d.shape, d.values, d.texts }

// EventDataOf returns the data with these Parts. Stored parts must have been cut by their shape.
func EventDataOf(shape, values string, texts []string) EventData {
	return EventData{shape: shape, values: values, texts: texts}
}

// EventShape is a stored shape, parsed once for all the events that share it. The zero value is the shape of no data.
type EventShape struct {
	text  string
	fixed []dataKind // of the fields that have values
	texts int        // number of texts outside of lists
}

// ParseEventShape parses the shape of Parts. ok is false if no dataBuilder can have written it.
func ParseEventShape(text string) (s EventShape, ok bool) {
	if text == "" {
		return EventShape{}, true
	}
	s.text, s.fixed = text, make([]dataKind, 0, len(text)/2)
	r := EventData{shape: text}.reader()
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
func (s *EventShape) Text() string { return s.text }

// Cut returns how many of the stored bytes are the values of an event of this shape, and how many texts go with them. ok is false if no dataBuilder
// can have written such values.
func (s *EventShape) Cut(stored string) (values, texts int, ok bool) {
	r := dataReader{values: stored, at: s.texts}
	for _, r.kind = range s.fixed {
		r.skip()
	}
	return len(stored) - len(r.values), r.at, !r.bad
}
