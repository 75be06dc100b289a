package waits

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// waitFile is what a transaction has of one execution's waits.
type waitFile struct {
	asked   bool // the docs are all that was stored
	docs    []store.Doc
	Dossier *core.WaitState // nil: not loaded
	err     error           // why there is none
	wrote   []core.WaitWrite
}

// waitFiles are what a transaction has of waits, by execution.
type waitFiles struct{ of map[base.UUID]*waitFile }

// slot is the place of waitFiles in a transaction.
const waitSlot txn.Slot = 2

// fileOf returns what a transaction has of an execution's waits.
func fileOf(u *txn.Tx, id base.UUID) *waitFile {
	files := txn.State[waitFiles](u, waitSlot)
	if files.of[id] == nil {
		txn.SetIn(&files.of, id, &waitFile{})
	}
	return files.of[id]
}

// knownFile is fileOf for a caller that only looks: nil, if there is nothing.
func knownFile(u *txn.Tx, id base.UUID) *waitFile {
	if files := txn.Known[waitFiles](u, waitSlot); files != nil {
		return files.of[id]
	}
	return nil
}

// LoadedState returns the waits of an execution if the transaction has all of them; else nil.
func LoadedState(u *txn.Tx, id base.UUID) *core.WaitState {
	if file := knownFile(u, id); file != nil {
		return file.Dossier
	}
	return nil
}

// askedBudget returns the budget that a suspended execution asks to be raised, if the transaction has its waits.
func askedBudget(u *txn.Tx, ent *txn.Row) (base.UUID, bool) {
	if file := knownFile(u, ent.Exec.ID.UUID); file == nil || !file.asked {
		return base.UUID{}, false
	}
	d, err := Dossier(u, ent)
	if err != nil {
		return base.UUID{}, false // the code that needs it reports that
	}
	return ent.Exec.AskedBudget(d)
}

// absorbWaits takes in the dossiers that were loaded. One that it has already stays as the commands left it.
func absorbWaits(u *txn.Tx, want *store.Want, loaded *store.Loaded) {
	for _, owned := range want.Owned {
		id, ok := base.ParseUUID(owned.Owner)
		if owned.Kind != DocWait || !ok {
			continue
		}
		if file := fileOf(u, id); !file.asked {
			file.asked, file.docs = true, loaded.Owned[owned]
		}
	}
}

// Dossier is what is stored beside an execution about its waits, as the commands so far have left it. An execution that had none when
// it was loaded needs no look. Codes: corruption, for this command alone (W10).
func Dossier(u *txn.Tx, ent *txn.Row) (*core.WaitState, error) {
	file := fileOf(u, ent.Exec.ID.UUID)
	switch {
	case file.Dossier != nil || file.err != nil:
		return file.Dossier, file.err
	case !file.asked && ent.Waits != nil:
		return nil, base.Errorf(base.CodeInternal, "the dossier of %s was not loaded", ent.Exec.ID)
	}
	if file.Dossier, file.err = dossierOf(file.docs); file.err == nil {
		file.Dossier.Apply(file.wrote)
	}
	return file.Dossier, file.err
}

// keepWaits writes the records of waits that a command or a timer has made.
func keepWaits(u *txn.Tx, writes []core.WaitWrite) {
	for _, write := range writes {
		file := fileOf(u, write.ExecutionID.UUID)
		writeWait(u, file, write)
		if file.wrote = append(file.wrote, write); file.Dossier != nil {
			file.Dossier.Apply([]core.WaitWrite{write})
		}
	}
}

// writeWait turns a record into docs. A command that changes a waitpoint has the dossier loaded: without it, the waitpoint is new.
func writeWait(u *txn.Tx, file *waitFile, write core.WaitWrite) {
	id := write.ExecutionID.UUID
	doc := store.Doc{DocRef: waitRef(id, write.Record), Body: write.Record.Encode()}
	switch r := write.Record.(type) {
	case *core.Waitpoint:
		if file.Dossier != nil && file.Dossier.Waitpoint(r.ID) != nil {
			u.PutDoc(doc)
			return
		}
		u.AddDoc(whereabouts{ExecutionID: r.ExecutionID, Namespace: r.Namespace, Key: r.Key}.doc(waitpointAtRef(r.ID)))
	case *core.Link:
		u.AddDoc(whereabouts{ExecutionID: r.ExecutionID, Namespace: r.Namespace}.doc(linkAtRef(r.ID)))
	case *core.Suspension:
		if r.Continuation != nil {
			putWaitData(u, continuationRef(id, r.Seq), r.Continuation)
		}
	case *core.Signal:
		putWaitData(u, signalDataRef(id, r.Ordinal), &r.Payload)
	}
	u.Changes.PutDocs = append(u.Changes.PutDocs, doc) // it is written once
}

// putWaitData writes the bytes of a payload. An empty one needs none.
func putWaitData(u *txn.Tx, ref store.DocRef, p *core.Payload) {
	if p.Size > 0 {
		u.Changes.PutDocs = append(u.Changes.PutDocs, store.Doc{DocRef: ref, Body: []byte("{}"), Data: p.Data})
	}
}

// markWaits brings up to date what lists find open waitpoints and suspended executions by: it follows from the record as it was loaded
// and as it is now. Most executions wait for nothing, and nothing is looked at then.
func markWaits(u *txn.Tx, ent *txn.Row) {
	if ent.Waits == ent.Exec.Waits {
		return
	}
	before, now := OpenMarks(ent.Exec, ent.Waits), OpenMarks(ent.Exec, ent.Exec.Waits)
	for ref := range before {
		if _, stays := now[ref]; !stays {
			u.DropDoc(ref)
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
