package stream

import "github.com/flowfabric/flowfabric/internal/core/base"

// editor applies the patches of one call to a document.
type editor struct {
	root    *object
	version int64
}

// edit begins with a document, nil for none: the editor does not change it. The text must be that of a document.
func edit(d *Document) *editor {
	if d == nil {
		return &editor{root: &object{}}
	}
	return &editor{root: readStored(string(d.Text)), version: d.Version}
}

// apply applies one patch (E9, E10): invalid_patch, patch_too_deep, summary_too_large. After an error the editor must not be used any more.
func (e *editor) apply(patch []byte) *base.Error {
	if err := CheckPatch(patch); err != nil {
		return err
	}
	e.root.merge(readObject(patch))
	if size := e.root.length(); size > MaxDocument {
		return base.Errorf(base.CodeSummaryTooLarge, "the document would have %d bytes, at most %d are allowed", size, MaxDocument).
			WithField("payload").With("size", size).With("limit", MaxDocument).
			WithHint("remove members from the document with null, or keep large data elsewhere")
	}
	e.version++
	return nil
}

// CheckPatch checks what can be said of a patch without the document: invalid_patch unless it is a JSON object in valid UTF-8, patch_too_deep.
func CheckPatch(patch []byte) *base.Error {
	depth, ok := checkObject(patch)
	if !ok {
		return base.Errorf(base.CodeInvalidPatch, "must be a JSON object in valid UTF-8").
			WithField("payload").WithHint("send a JSON merge patch (RFC 7396) that is an object")
	}
	if depth > MaxNesting {
		return base.Errorf(base.CodePatchTooDeep, "%d objects and arrays stand inside one another, at most %d are allowed", depth, MaxNesting).
			WithField("payload").With("limit", MaxNesting).WithHint("send a patch that is less deep")
	}
	return nil
}

// document returns the document after the patches; before is the one that the editor began with.
func (e *editor) document(before *Document, now base.Time) *Document {
	d := &Document{Text: e.root.appendText(make([]byte, 0, e.root.length())), Version: e.version, FirstAt: now, LastAt: now}
	if before != nil {
		d.FirstAt = before.FirstAt
	}
	return d
}
