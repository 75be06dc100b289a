package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
	"github.com/flowfabric/flowfabric/internal/payload"
)

// Payload is bytes with their content type. They come back bit for bit. The zero Payload means nothing at all, which differs
// from an empty payload that has a content type.
//
// In JSON a payload is several members of the object that it belongs to: its value, or its text or its bytes as base64, its content type and
// its size.
type Payload struct {
	Data        []byte
	ContentType string // default application/octet-stream

	size    int    // of the bytes, where it is not the length of Data: they were not loaded, or JSON has lost their white space
	err     error  // of the maker, reported by the call that uses the payload
	asBytes bool   // JSON shows it as base64
	given   string // content type that was read before the bytes, which may not follow
}

// None as In or Out of a Kind means: nothing.
type None struct{}

// JSON encodes v. An encoding error is reported by the call that uses the payload, with code invalid_argument.
func JSON(v any) Payload {
	data, err := json.Marshal(v)
	if err != nil {
		return Payload{ContentType: payload.ContentJSON, err: err}
	}
	return Payload{Data: data, ContentType: payload.ContentJSON}
}

// Text is a payload of UTF-8 text.
func Text(s string) Payload { return Payload{Data: []byte(s), ContentType: payload.ContentText} }

// Bytes is a payload of any bytes; contentType "" means application/octet-stream.
func Bytes(b []byte, contentType string) Payload {
	if b == nil {
		b = []byte{}
	}
	if contentType == "" {
		contentType = payload.ContentBytes
	}
	return Payload{Data: b, ContentType: contentType}
}

// Unloaded is a payload of which only type and size are known.
func Unloaded(contentType string, size int) Payload {
	return Payload{ContentType: contentType, size: size}
}

// Failed is a payload that could not be made. The call that uses it reports err.
func Failed(err error) Payload { return Payload{err: err} }

// Size is how many bytes the payload has, also of one whose bytes were not loaded, or that JSON shows without its white space.
func (p Payload) Size() int {
	if p.size != 0 {
		return p.size
	}
	return len(p.Data)
}

// Omitted reports whether there are bytes and they were not loaded.
func (p Payload) Omitted() bool { return p.Data == nil && p.size > 0 }

// IsNothing reports whether there is no payload at all, not even an empty one.
func (p Payload) IsNothing() bool { return p.Data == nil && p.ContentType == "" && p.size == 0 }

// AsBytes makes JSON show the payload as base64, whatever its content type: so it arrives bit for bit. Shown otherwise, JSON loses
// white space that means nothing.
func (p Payload) AsBytes() Payload {
	p.asBytes = true
	return p
}

// ShownAsBytes reports whether JSON shows the payload as base64 in any case.
func (p Payload) ShownAsBytes() bool { return p.asBytes }

// Decode reads the payload into a *[]byte, *string or *Payload as it is, into a *None not at all, into anything else as JSON.
// What is not JSON is invalid_json.
func (p Payload) Decode(into any) error {
	if p.err != nil {
		return p.Problem("payload")
	}
	switch v := into.(type) {
	case *[]byte:
		*v = p.Data
	case *string:
		*v = string(p.Data)
	case *Payload:
		*v = p
	case *None:
	default:
		if err := json.Unmarshal(p.Data, into); err != nil {
			return Errorf(string(base.CodeInvalidJSON), "the payload does not decode into %T: %w", into, err)
		}
	}
	return nil
}

// Problem is what went wrong when the payload was made, as a refusal of the argument called field; nil when nothing did.
func (p Payload) Problem(field string) error {
	var refusal *Error
	switch {
	case p.err == nil:
		return nil
	case errors.As(p.err, &refusal):
		return refusal
	}
	err := Errorf(string(base.CodeInvalidArgument), "the value does not encode as JSON: %w", p.err)
	err.Field = field
	return err
}

// The ways in which a payload stands in JSON, by the tag spread of its field.
const (
	sent  = "sent"  // in a request (U8)
	shown = "shown" // in an answer (U9, U10)
	kept  = "kept"  // in an answer that leaves out bytes which were not loaded, whatever their size
)

// The endings of the names of its members. The one without is the JSON value.
const (
	endingText    = "_text"
	endingBytes   = "_bytes"
	endingType    = "_content_type"
	endingSize    = "_size"
	endingOmitted = "_omitted"
)

var (
	sentMembers  = []jsonx.Member{{Rival: true}, {Ending: endingText, Rival: true}, {Ending: endingBytes, Rival: true}, {Ending: endingType}}
	shownMembers = append(sentMembers[:len(sentMembers):len(sentMembers)], jsonx.Member{Ending: endingSize}, jsonx.Member{Ending: endingOmitted})
)

// Members are the members of the JSON object that a payload is a field of. It serves packages of this module.
func (p *Payload) Members(how string) []jsonx.Member {
	if how == sent {
		return sentMembers
	}
	return shownMembers
}

// AppendMembers adds the members to the text of that object. It serves packages of this module.
func (p *Payload) AppendMembers(text []byte, name, how string) ([]byte, error) {
	contentType := p.ContentType
	switch {
	case how == shown && p.Omitted():
		if contentType != "" {
			text = jsonx.AppendString(jsonx.AppendName(text, name, endingType), contentType)
		}
		text = strconv.AppendInt(jsonx.AppendName(text, name, endingSize), int64(p.size), 10)
		return append(jsonx.AppendName(text, name, endingOmitted), "true"...), nil
	case p.Data == nil && contentType == "":
		return text, nil
	case how == kept && p.Data == nil:
		text = jsonx.AppendString(jsonx.AppendName(text, name, endingType), contentType)
		return append(jsonx.AppendName(text, name, endingOmitted), "true"...), nil
	case contentType == "":
		contentType = payload.ContentBytes
	}
	form := payload.Bytes
	switch {
	case how == sent:
		form = payload.Sent(p.Data, contentType)
	case !p.asBytes:
		form = payload.Shown(p.Data, contentType)
	}
	text, err := p.appendAs(text, name, form)
	if err != nil {
		return nil, err
	}
	text = jsonx.AppendString(jsonx.AppendName(text, name, endingType), contentType)
	if how != sent {
		text = strconv.AppendInt(jsonx.AppendName(text, name, endingSize), int64(len(p.Data)), 10)
	}
	return text, nil
}

// appendAs adds the member that holds the bytes.
func (p *Payload) appendAs(text []byte, name string, form payload.Form) ([]byte, error) {
	switch form {
	case payload.JSON:
		return jsonx.AppendRaw(jsonx.AppendName(text, name, ""), p.Data)
	case payload.Text:
		return jsonx.AppendString(jsonx.AppendName(text, name, endingText), string(p.Data)), nil
	default:
		text = append(jsonx.AppendName(text, name, endingBytes), '"')
		return append(base64.StdEncoding.AppendEncode(text, p.Data), '"'), nil
	}
}

// ReadMember reads one of the members. It serves packages of this module.
func (p *Payload) ReadMember(d *jsonx.Decoder, ending, how string) {
	if ending != "" && d.Peek() == 'n' {
		d.Bytes() // null is absent, but for the value itself
		return
	}
	switch ending {
	case "":
		p.take(append([]byte{}, d.Bytes()...), payload.ContentJSON, how)
	case endingText:
		if text, ok := d.String(); ok {
			p.take([]byte(text), payload.ContentText, how)
		}
	case endingBytes:
		var data []byte
		if d.Into(&data) {
			p.take(data, payload.ContentBytes, how)
		}
	case endingType:
		if text, ok := d.String(); ok {
			p.takeType(text, how)
		}
	case endingSize:
		var size int
		if d.Into(&size) && (p.Data == nil || size != len(p.Data)) {
			p.size = size
		}
	default:
		d.Bytes() // it is known by the size of bytes that are not there
	}
}

// take takes the bytes over. In a request they have a content type by default.
func (p *Payload) take(data []byte, byDefault, how string) {
	if data == nil {
		data = []byte{}
	}
	if p.Data = data; p.size == len(data) {
		p.size = 0
	}
	if how != sent || p.ContentType != "" {
		return
	}
	if p.ContentType, p.given = p.given, ""; p.ContentType == "" {
		p.ContentType = byDefault
	}
}

// takeType takes the content type over. In a request it means nothing without bytes.
func (p *Payload) takeType(contentType, how string) {
	switch {
	case contentType == "" && how == sent:
	case how == sent && p.Data == nil:
		p.given = contentType
	default:
		p.ContentType = contentType
	}
}
