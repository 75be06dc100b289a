package streams

import (
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// AppendRequest is what a worker appends in one call.
type AppendRequest struct {
	Drafts    []stream.Draft
	ClientSeq *int64 // nil: RequestKey protects the call against repetition
	// RequestKey is recorded with the answer for 24 h if there is no ClientSeq (U13); "": the call is not protected at all.
	RequestKey string
}

// AppendAnswer is the answer to an append.
type AppendAnswer struct {
	Attempt int
	stream.Answer
}

// appendFrames appends frames to the stream of the attempt whose lease the caller holds (E1). It changes nothing of the execution (E4).
type appendFrames struct {
	caller txn.Caller
	id     base.GivenID
	fence  core.Fence
	call   AppendRequest
	answer AppendAnswer
	// request is the record of the call by its key, and print the digest of its arguments; without a Key there is none.
	request store.DocRef
	print   string
	counts  map[stream.Mode]int64 // frames that were written
	size    int64                 // bytes of their payloads
}

// AppendFrames appends frames, all of them or none.
func (e *Streams) AppendFrames(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, call AppendRequest) (AppendAnswer, error) {
	if err := stream.CheckDrafts(call.Drafts); err != nil {
		return AppendAnswer{}, err
	}
	if err := f.Validate(); err != nil {
		return AppendAnswer{}, err
	}
	cmd := &appendFrames{caller: c, id: id, fence: f, call: call}
	if call.RequestKey != "" && call.ClientSeq == nil {
		cmd.request, cmd.print = txn.RequestRef(c, cmd.Name(), id.UUID.String(), call.RequestKey), txn.Fingerprint(f, call.Drafts)
		cmd.request.Owner = txn.Owner(id.UUID)
	}
	return txn.Answered(&cmd.answer, e.Do(ctx, cmd))
}

func (a *appendFrames) Name() string { return "append_frames" }

// Yields says that commands of workers who do not talk are not to wait for those who do.
func (a *appendFrames) Yields() {}

// Carried is the lease under which the command is sent; nil: none.
func (a *appendFrames) Carried() *core.Fence { return &a.fence }

// Subject is the execution that the command is about.
func (a *appendFrames) Subject() base.UUID { return a.id.UUID }

// Want names the head by the attempt of the fence: if that is not the attempt of the execution, the fence is refused before the head is used.
func (a *appendFrames) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, a.id.UUID)
	w.Docs = append(w.Docs, headRef(a.id.UUID, a.fence.AttemptID))
	if stream.NeedsDocument(a.call.Drafts) {
		w.Docs = append(w.Docs, summaryRef(a.id.UUID, a.fence.AttemptID))
	}
	if a.request.Key != "" {
		w.Docs = append(w.Docs, a.request)
	}
}

func (a *appendFrames) Decide(u *txn.Tx) error {
	a.answer, a.counts, a.size = AppendAnswer{}, nil, 0
	row, err := u.Find(a.caller, a.id)
	if err != nil {
		return err
	}
	if known, err := u.Repeated(a.caller, a.request, a.print, &a.answer); known {
		return err
	}
	u.Settle(row)
	x := row.Exec
	if _, err := x.CheckKeep(u.Effects(a.caller), a.fence); err != nil {
		return err
	}
	head := stream.Head{Attempt: x.Attempt.Index}
	if doc := u.Doc(headRef(x.ID.UUID, x.Attempt.ID)); doc != nil {
		if head, err = decodeHead(doc); err != nil {
			return err
		}
	}
	call := &stream.Appending{Epoch: a.fence.Epoch, ClientSeq: a.call.ClientSeq, Drafts: a.call.Drafts, Now: u.Now}
	if stream.NeedsDocument(a.call.Drafts) {
		if call.Document, err = decodeSummary(u.Doc(summaryRef(x.ID.UUID, x.Attempt.ID))); err != nil {
			return err
		}
	}
	done, err := head.Append(&x.Policy.Stream, call)
	if err != nil {
		return err
	}
	a.answer = AppendAnswer{x.Attempt.Index, done.Answer}
	if done.Repeated {
		a.caller.Again()
		return nil
	}
	a.write(u, x, &head, &done)
	u.RecordRequest(a.request, a.print, a.answer)
	return nil
}

// write stores what an append has made, and publishes it once it is durable.
func (a *appendFrames) write(u *txn.Tx, x *core.Execution, before *stream.Head, done *stream.Appended) {
	id, attempt := x.ID.UUID, x.Attempt.ID
	u.PutDoc(headDoc(headRef(id, attempt), &done.Head))
	if done.Document != nil {
		u.PutDoc(store.Doc{DocRef: summaryRef(id, attempt), Body: empty, Data: done.Document.Encode()})
	}
	a.counts = make(map[stream.Mode]int64, len(done.Chunks))
	for i := range done.Chunks {
		chunk := &done.Chunks[i]
		ref := store.DocRef{Kind: docChunk, Owner: txn.Owner(id), Key: chunk.Key(x.Attempt.Index)}
		u.AddDoc(store.Doc{DocRef: ref, Body: empty, Data: chunk.Encode()})
		a.counts[chunk.Mode] = chunk.Count
		a.size += chunk.Bytes
	}
	policy := &x.Policy.Stream
	if allDeleted(before, stream.BestEffort) && !allDeleted(&done.Head, stream.BestEffort) {
		armFrames(u, policy, id, attempt)
	}
	e, trim := txn.Room[Streams](u.Engine, slot), worthTrimming(&done.Head, policy, u.Now)
	u.Safe.Then(func(err error) {
		if err == nil {
			e.appended(a, trim)
		}
	})
}

// headBody is the body of the record of a head.
type headBody struct {
	Attempt int `json:"attempt"`
}

func headDoc(ref store.DocRef, h *stream.Head) store.Doc {
	body, _ := json.Marshal(headBody{h.Attempt})
	return store.Doc{DocRef: ref, Body: body, Data: h.Encode()}
}

// decodeHead reads the head of a stream that has frames.
func decodeHead(doc *store.Doc) (stream.Head, error) {
	var body headBody
	if err := json.Unmarshal(doc.Body, &body); err != nil {
		return stream.Head{}, txn.Corrupt("stream", err)
	}
	head, err := stream.DecodeHead(body.Attempt, doc.Data)
	if err != nil {
		return head, txn.Corrupt("stream", err)
	}
	return head, nil
}

// decodeSummary reads a summary document; nil: there is none yet.
func decodeSummary(doc *store.Doc) (*stream.Document, error) {
	if doc == nil {
		return nil, nil
	}
	document, err := stream.DecodeDocument(doc.Data)
	if err != nil {
		return nil, txn.Corrupt("summary document", err)
	}
	return document, nil
}
