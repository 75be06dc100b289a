package txn

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// waitFile is what a unit has of one execution's waits.
type waitFile struct {
	asked   bool // the docs are all that was stored
	docs    []store.Doc
	dossier *core.Dossier // nil: not loaded
	err     error         // why there is none
	wrote   []core.WaitWrite
}

func (u *Tx) waitFile(id base.UUID) *waitFile {
	if u.waits[id] == nil {
		SetIn(&u.waits, id, &waitFile{})
	}
	return u.waits[id]
}

// absorbWaits takes in the dossiers that were loaded. One that the unit has already stays as the commands left it.
func (u *Tx) absorbWaits(want *store.Want, loaded *store.Loaded) {
	for _, owned := range want.Owned {
		id, ok := base.ParseUUID(owned.Owner)
		if owned.Kind != DocWait || !ok {
			continue
		}
		if file := u.waitFile(id); !file.asked {
			file.asked, file.docs = true, loaded.Owned[owned]
		}
	}
}

// Dossier is what is stored beside an execution about its waits, as the commands so far have left it. An execution that had none when
// it was loaded needs no look. Codes: corruption, for this command alone (W10).
func (u *Tx) Dossier(ent *Row) (*core.Dossier, error) {
	file := u.waitFile(ent.Exec.ID.UUID)
	switch {
	case file.dossier != nil || file.err != nil:
		return file.dossier, file.err
	case !file.asked && ent.waits != nil:
		return nil, base.Errorf(base.CodeInternal, "the dossier of %s was not loaded", ent.Exec.ID)
	}
	if file.dossier, file.err = dossierOf(file.docs); file.err == nil {
		file.dossier.Apply(file.wrote)
	}
	return file.dossier, file.err
}

// keepWaits writes the records of waits that a command or a timer has made.
func (u *Tx) keepWaits(writes []core.WaitWrite) {
	for _, write := range writes {
		file := u.waitFile(write.ExecutionID.UUID)
		u.writeWait(file, write)
		if file.wrote = append(file.wrote, write); file.dossier != nil {
			file.dossier.Apply([]core.WaitWrite{write})
		}
	}
}

// writeWait turns a record into docs. A command that changes a waitpoint has the dossier loaded: without it, the waitpoint is new.
func (u *Tx) writeWait(file *waitFile, write core.WaitWrite) {
	id := write.ExecutionID.UUID
	doc := store.Doc{DocRef: waitRef(id, write.Record), Body: write.Record.Encode()}
	switch r := write.Record.(type) {
	case *core.Waitpoint:
		if file.dossier != nil && file.dossier.Waitpoint(r.ID) != nil {
			u.PutDoc(doc)
			return
		}
		u.addDoc(whereabouts{ExecutionID: r.ExecutionID, Namespace: r.Namespace, Key: r.Key}.doc(waitpointAtRef(r.ID)))
	case *core.Link:
		u.addDoc(whereabouts{ExecutionID: r.ExecutionID, Namespace: r.Namespace}.doc(linkAtRef(r.ID)))
	case *core.Suspension:
		if r.Continuation != nil {
			u.putWaitData(continuationRef(id, r.Seq), r.Continuation)
		}
	case *core.Signal:
		u.putWaitData(signalDataRef(id, r.Ordinal), &r.Payload)
	}
	u.Changes.PutDocs = append(u.Changes.PutDocs, doc) // it is written once
}

// putWaitData writes the bytes of a payload. An empty one needs none.
func (u *Tx) putWaitData(ref store.DocRef, p *core.Payload) {
	if p.Size > 0 {
		u.Changes.PutDocs = append(u.Changes.PutDocs, store.Doc{DocRef: ref, Body: []byte("{}"), Data: p.Data})
	}
}

// addDoc writes a record that must not exist: if another transaction inserts it first, the commit fails with Conflict.
func (u *Tx) addDoc(doc store.Doc) {
	SetIn(&u.docs, doc.DocRef, &doc)
	u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
}

// markWaits brings up to date what lists find open waitpoints and suspended executions by: it follows from the record as it was loaded
// and as it is now. Most executions wait for nothing, and nothing is looked at then.
func (u *Tx) markWaits(ent *Row) {
	if ent.waits == ent.Exec.Waits {
		return
	}
	before, now := OpenMarks(ent.Exec, ent.waits), OpenMarks(ent.Exec, ent.Exec.Waits)
	for ref := range before {
		if _, stays := now[ref]; !stays {
			u.dropDoc(ref)
		}
	}
	for ref, doc := range now {
		if was, stood := before[ref]; !stood || string(was.Body) != string(doc.Body) {
			u.PutDoc(doc)
		}
	}
}

// OpenMarks are the marks of an execution with these waits.
func OpenMarks(x *core.Execution, w *core.Waits) map[store.DocRef]store.Doc {
	marks := map[store.DocRef]store.Doc{}
	if w == nil {
		return marks
	}
	for i := range w.Open {
		ref := waitpointOpenRef(w.Open[i].ID)
		marks[ref] = whereabouts{ExecutionID: x.ID, Namespace: x.Class.Namespace, Key: w.Open[i].Key}.doc(ref)
	}
	if s := w.Suspension; s != nil {
		ref := suspendedRef(x.Class.Namespace, s.At, x.ID.UUID)
		marks[ref] = suspendedMark{Lane: x.Class.Lane, ReasonCode: s.ReasonCode, FlowID: x.FlowID}.doc(ref)
	}
	return marks
}
