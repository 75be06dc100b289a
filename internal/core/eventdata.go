package core

import "encoding/json"

// EventData is the part of an event that is specific to its kind (E24): a JSON object in a form that is cheap to make and to store. It is encoded
// as JSON only on demand, which for most events never happens. The zero value is the data of an event without data. It is immutable: copies share
// their parts.
type EventData struct {
	shape  string   // kinds and names of the fields in order, ending with the end of the outermost object
	values string   // numbers, moments and ids, one after the other
	texts  []string // in order
}

// dataKind is the kind of a field in a shape. Values are stored: only append.
type dataKind byte

const (
	dataShut   dataKind = iota // no field: the end of an object
	dataWhole                  // no field: all of the data is this JSON text
	dataOpen                   // an object, up to its dataShut
	dataText                   // a text
	dataTexts                  // a list of texts: their number among the values
	dataJSON                   // a text that is JSON already
	dataNumber                 // a varint
	dataMoment                 // a varint
	dataUUID                   // 16 bytes
	dataID                     // N, then 16 bytes
	dataTrue
	dataFalse
	dataKinds
)

func (k dataKind) named() bool { return k > dataWhole }

// EventDataOfJSON returns the data of an event that was written as JSON; the zero value for an empty text.
func EventDataOfJSON(text json.RawMessage) EventData {
	if len(text) == 0 {
		return EventData{}
	}
	return EventData{shape: string(rune(dataWhole)), texts: []string{string(text)}}
}

// JSON encodes the data as a JSON object; nil if there is none.
func (d EventData) JSON() json.RawMessage {
	if d.shape == "" {
		return nil
	}
	o := newObject(256)
	for r := d.reader(); r.next(); {
		switch name := fieldNames[r.field]; r.kind {
		case dataWhole:
			return BareFilter(json.RawMessage(r.text()))
		case dataShut:
			o.shut()
		case dataOpen:
			o.open(name)
		case dataText:
			o.str(name, r.text())
		case dataTexts:
			o.strs(name, r.list())
		case dataJSON:
			o.raw(name, json.RawMessage(r.text()))
		case dataNumber:
			o.num(name, r.int())
		case dataMoment:
			o.moment(name, Time(r.int()))
		case dataUUID:
			o.uuid(name, r.uuid())
		case dataID:
			o.str(name, ID{N: r.cut(1)[0], UUID: r.uuid()}.String())
		case dataTrue, dataFalse:
			o.flag(name, r.kind == dataTrue)
		}
	}
	return o.text
}

// Text returns the text under a name of the outermost object without encoding JSON; "" if there is none.
func (d EventData) Text(name string) string {
	for r := d.reader(); r.next(); r.skip() {
		if r.kind == dataText && r.depth == 1 && fieldNames[r.field] == name {
			return r.text()
		}
	}
	return ""
}
