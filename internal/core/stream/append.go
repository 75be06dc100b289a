package stream

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Appending is one call of append.
type Appending struct {
	Epoch     int64  // of the lease under which the caller acts
	ClientSeq *int64 // nil: the call is not protected against repetition
	Drafts    []Draft
	Now       base.Time
	Document  *Document // the summary document before the call, nil for none; it is required if NeedsDocument reports true
}

// Appended is what an append writes and answers.
type Appended struct {
	Answer   Answer
	Repeated bool      // the answer is that of an earlier call, and nothing is to be written
	Head     Head      // the head after the call
	Chunks   []Chunk   // one for each mode of the call, in the order of modes. Their payloads are those of the drafts
	Document *Document // the document after the call; nil if it has no summary frame
}

// NeedsDocument reports whether a call needs the summary document: one of the drafts is a summary frame.
func NeedsDocument(drafts []Draft) bool {
	return slices.ContainsFunc(drafts, func(d Draft) bool { return d.Mode == Summary })
}

// Append does one append on a stream, all of it or nothing (E1). The caller has checked the fence. Refusals, in the order of the checks: those of
// CheckDrafts; stale_lease, if the stream was closed; stale_append; those of a patch, invalid_patch, patch_too_deep and summary_too_large, for the first summary frame
// that has one; stream_full. A Document whose version is not that of the head is corruption.
func (h Head) Append(p *Policy, call *Appending) (Appended, error) {
	if err := CheckDrafts(call.Drafts); err != nil {
		return Appended{}, err
	}
	if h.IsClosed() {
		return Appended{}, base.Errorf(base.CodeStaleLease, "the attempt ended, and its stream was closed with %s", h.Closed.Reason)
	}
	answer, repeated, err := h.repeated(call)
	if err != nil {
		return Appended{}, err
	}
	if repeated {
		return Appended{Answer: answer, Repeated: true, Head: h}, nil
	}
	document, err := h.summarize(call)
	if err != nil {
		return Appended{}, err
	}
	after, chunks := h.write(call)
	if err := h.room(p, after.Tallies[Durable]); err != nil {
		return Appended{}, err
	}
	a := Appended{Answer: Answer{FirstSeq: h.LastSeq + 1, LastSeq: after.LastSeq}, Chunks: chunks, Document: document}
	if document != nil {
		a.Answer.SummaryVersion = document.Version
	}
	if n := after.Tallies[BestEffort].Frames - h.Tallies[BestEffort].Frames; n > 0 {
		after.BestEffort = h.BestEffort.after(&p.BestEffort, int(n), call.Now, after.Tallies[BestEffort].Frames)
	}
	if call.ClientSeq != nil {
		after.Call = Call{Present: true, Epoch: call.Epoch, ClientSeq: *call.ClientSeq, Answer: a.Answer}
	}
	a.Head = after
	return a, nil
}

// repeated compares the client_seq with that of the last call under the same lease (E3).
func (h *Head) repeated(call *Appending) (Answer, bool, error) {
	if call.ClientSeq == nil || !h.Call.Present || h.Call.Epoch != call.Epoch || *call.ClientSeq > h.Call.ClientSeq {
		return Answer{}, false, nil
	}
	if *call.ClientSeq == h.Call.ClientSeq {
		return h.Call.Answer, true, nil
	}
	return Answer{}, false, base.Errorf(base.CodeStaleAppend, "the client_seq %d is below %d, the last one that was accepted", *call.ClientSeq, h.Call.ClientSeq).
		WithField("client_seq").With("client_seq", h.Call.ClientSeq).WithHint("number the calls of a lease in the order in which they are sent")
}

// summarize applies the patches of the call; nil if it has none.
func (h *Head) summarize(call *Appending) (*Document, error) {
	if !NeedsDocument(call.Drafts) {
		return nil, nil
	}
	var version int64
	if call.Document != nil {
		version = call.Document.Version
	}
	if version != h.SummaryVersion() {
		return nil, base.Errorf(base.CodeCorruption, "the summary document has version %d, and the stream has %d patches", version, h.SummaryVersion())
	}
	e := edit(call.Document)
	for i := range call.Drafts {
		if call.Drafts[i].Mode != Summary {
			continue
		}
		if err := e.apply(call.Drafts[i].Payload); err != nil {
			return nil, err.WithField(base.Element(fieldFrames, i) + "." + err.Field)
		}
	}
	return e.document(call.Document, call.Now), nil
}

// write makes the chunks of a call, and the head with what they add to it.
func (h Head) write(call *Appending) (Head, []Chunk) {
	var of [modes]Chunk
	for i := range call.Drafts {
		h.LastSeq++
		f := call.Drafts[i].frame(h.LastSeq, call.Now)
		t := h.Tallies[f.Mode]
		if f.Mode == Summary {
			f.SummaryVersion = t.Frames + 1
		}
		if of[f.Mode].Frames == nil {
			of[f.Mode].Frames = make([]Frame, 0, len(call.Drafts)-i)
		}
		of[f.Mode].add(f, t)
		h.Tallies[f.Mode] = t.next(&f)
	}
	if h.FirstAt == 0 {
		h.FirstAt = call.Now
	}
	h.LastAt = call.Now
	var chunks []Chunk
	for m := range of {
		if len(of[m].Frames) > 0 {
			chunks = append(chunks, of[m])
		}
	}
	return h, chunks
}
