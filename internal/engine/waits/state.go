package waits

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// waitRows is what a transaction has of one execution's waits.
type waitRows struct {
	asked bool // the docs are all that was stored
	docs  []store.Doc
	State *core.WaitState // nil: not loaded
	err   error           // why there is none
	wrote []core.WaitWrite
}

// allWaitRows are what a transaction has of waits, by execution.
type allWaitRows struct{ of map[base.UUID]*waitRows }

// waitSlot is the place of allWaitRows in a transaction.
const waitSlot txn.Slot = 2

// rowsOf returns what a transaction has of an execution's waits.
func rowsOf(u *txn.Tx, id base.UUID) *waitRows {
	all := txn.State[allWaitRows](u, waitSlot)
	if all.of[id] == nil {
		txn.SetIn(&all.of, id, &waitRows{})
	}
	return all.of[id]
}

// knownRows is rowsOf for a caller that only looks: nil, if there is nothing.
func knownRows(u *txn.Tx, id base.UUID) *waitRows {
	if all := txn.Known[allWaitRows](u, waitSlot); all != nil {
		return all.of[id]
	}
	return nil
}

// LoadedState returns the waits of an execution if the transaction has all of them; else nil.
func LoadedState(u *txn.Tx, id base.UUID) *core.WaitState {
	if rows := knownRows(u, id); rows != nil {
		return rows.State
	}
	return nil
}

// askedBudget returns the budget that a suspended execution asks to be raised, if the transaction has its waits.
func askedBudget(u *txn.Tx, ent *txn.Row) (base.UUID, bool) {
	if rows := knownRows(u, ent.Exec.ID.UUID); rows == nil || !rows.asked {
		return base.UUID{}, false
	}
	d, err := StateOf(u, ent)
	if err != nil {
		return base.UUID{}, false // the code that needs it reports that
	}
	return ent.Exec.AskedBudget(d)
}

// absorbWaits takes in the wait states that were loaded. One that it has already stays as the commands left it.
func absorbWaits(u *txn.Tx, want *store.Want, loaded *store.Loaded) {
	for _, owned := range want.Owned {
		id, ok := base.ParseUUID(owned.Owner)
		if owned.Kind != DocWait || !ok {
			continue
		}
		if rows := rowsOf(u, id); !rows.asked {
			rows.asked, rows.docs = true, loaded.Owned[owned]
		}
	}
}

// StateOf returns what is stored beside an execution about its waits, as the commands so far have left it. An execution that had none when
// it was loaded needs no look. Codes: corruption, for this command alone (W10).
func StateOf(u *txn.Tx, ent *txn.Row) (*core.WaitState, error) {
	rows := rowsOf(u, ent.Exec.ID.UUID)
	switch {
	case rows.State != nil || rows.err != nil:
		return rows.State, rows.err
	case !rows.asked && ent.Waits != nil:
		return nil, base.Errorf(base.CodeInternal, "the wait state of %s was not loaded", ent.Exec.ID)
	}
	if rows.State, rows.err = waitStateOf(rows.docs); rows.err == nil {
		rows.State.Apply(rows.wrote)
	}
	return rows.State, rows.err
}

// keepWaits writes the records of waits that a command or a timer has made.
func keepWaits(u *txn.Tx, writes []core.WaitWrite) {
	for _, write := range writes {
		rows := rowsOf(u, write.ExecutionID.UUID)
		writeWait(u, rows, write)
		if rows.wrote = append(rows.wrote, write); rows.State != nil {
			rows.State.Apply([]core.WaitWrite{write})
		}
	}
}

// writeWait turns a record into docs. A command that changes a waitpoint has the wait state loaded: without it, the waitpoint is new.
func writeWait(u *txn.Tx, rows *waitRows, write core.WaitWrite) {
	id := write.ExecutionID.UUID
	doc := store.Doc{DocRef: waitRef(id, write.Record), Body: write.Record.Encode()}
	switch r := write.Record.(type) {
	case *core.Waitpoint:
		if rows.State != nil && rows.State.Waitpoint(r.ID) != nil {
			u.PutDoc(doc)
			return
		}
		u.AddDoc(waitLocator{ExecutionID: r.ExecutionID, Namespace: r.Namespace, Key: r.Key}.doc(waitpointAtRef(r.ID)))
	case *core.Link:
		u.AddDoc(waitLocator{ExecutionID: r.ExecutionID, Namespace: r.Namespace}.doc(linkAtRef(r.ID)))
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
		marks[ref] = waitLocator{ExecutionID: x.ID, Namespace: x.Class.Namespace, Key: w.Open[i].Key}.doc(ref)
	}
	if s := w.Suspension; s != nil {
		ref := suspendedRef(x.Class.Namespace, s.At, x.ID.UUID)
		marks[ref] = suspendedMark{Lane: x.Class.Lane, ReasonCode: s.ReasonCode, FlowID: x.FlowID}.doc(ref)
	}
	return marks
}
