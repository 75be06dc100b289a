package eventdata

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Data is the part of an event that is specific to its kind (E24): a JSON object in a form that is cheap to make and to store. It is encoded
// as JSON only on demand, which for most events never happens. The zero value is the data of an event without data. It is immutable: copies share
// their parts.
type Data struct {
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

// OfJSON returns the data of an event that was written as JSON; the zero value for an empty text.
func OfJSON(text json.RawMessage) Data {
	if len(text) == 0 {
		return Data{}
	}
	return Data{shape: string(rune(dataWhole)), texts: []string{string(text)}}
}

// JSON encodes the data as a JSON object; nil if there is none.
func (d Data) JSON() json.RawMessage {
	if d.shape == "" {
		return nil
	}
	o := base.NewObject(256)
	for r := d.reader(); r.next(); {
		switch name := fieldNames[r.field]; r.kind {
		case dataWhole:
			return base.BareFilter(json.RawMessage(r.text()))
		case dataShut:
			o.Shut()
		case dataOpen:
			o.Open(name)
		case dataText:
			o.Str(name, r.text())
		case dataTexts:
			o.Strs(name, r.list())
		case dataJSON:
			o.Raw(name, json.RawMessage(r.text()))
		case dataNumber:
			o.Num(name, r.int())
		case dataMoment:
			o.Moment(name, base.Time(r.int()))
		case dataUUID:
			o.UUID(name, r.uuid())
		case dataID:
			o.Str(name, base.ID{N: r.cut(1)[0], UUID: r.uuid()}.String())
		case dataTrue, dataFalse:
			o.Flag(name, r.kind == dataTrue)
		}
	}
	return o.Text
}

// Text returns the text under a name of the outermost object without encoding JSON; "" if there is none.
func (d Data) Text(name string) string {
	for r := d.reader(); r.next(); r.skip() {
		if r.kind == dataText && r.depth == 1 && fieldNames[r.field] == name {
			return r.text()
		}
	}
	return ""
}
