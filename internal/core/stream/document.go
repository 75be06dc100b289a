package stream

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Document is the summary document of an attempt after its newest patch (E11). There is none before the first patch.
//
// Text is one JSON object without white space. Members stand in the order in which they were first set; numbers and strings are written as they were
// in the patches; of the ways to write a name the one with the fewest escapes is used.
type Document struct {
	Text    []byte
	Version int64 // the number of patches, at least 1
	FirstAt base.Time
	LastAt  base.Time
}

const documentVersion = 1

// Encode returns the stored form of d.
func (d *Document) Encode() []byte {
	to := make([]byte, 0, 32+len(d.Text))
	to = appendCount(append(to, documentVersion), d.Version)
	to = binary.AppendVarint(to, int64(d.FirstAt))
	to = binary.AppendVarint(to, int64(d.LastAt))
	return append(to, d.Text...)
}

// DecodeDocument reads the output of Encode, whose bytes the document shares; anything else is corruption.
func DecodeDocument(data []byte) (*Document, error) {
	d := decoder{data: data}
	d.check(d.byte() == documentVersion)
	doc := &Document{Version: d.count(), FirstAt: d.time(), LastAt: d.time()}
	doc.Text = d.data
	if d.bad || doc.Version < 1 || !doc.readable() {
		return nil, unreadable("summary document")
	}
	return doc, nil
}

// readable reports whether the text can be read as that of a document.
func (d *Document) readable() bool {
	depth, ok := checkObject(d.Text)
	return ok && depth <= MaxNesting && len(d.Text) <= MaxDocument
}
