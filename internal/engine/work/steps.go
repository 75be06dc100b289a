package work

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// stepIndex describes the steps of an execution as a whole: how many there are in all runs, and for a run that was replayed with keep_steps the
// first run whose steps it sees (L150).
type stepIndex struct {
	Count int         `json:"count"`
	From  map[int]int `json:"from,omitempty"`
}

// first is the first run whose steps the given run sees.
func (i *stepIndex) first(run int) int {
	if from, ok := i.From[run]; ok {
		return from
	}
	return run
}

// StepsRef names the record of the steps of an execution.
func StepsRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docSteps, Owner: txn.Owner(id)}
}

func stepRef(id base.UUID, run int, name string) store.DocRef {
	return store.DocRef{Kind: docStep, Owner: txn.Owner(id), Key: fmt.Sprintf("%06d/%s", run, name)}
}

func decodeStepIndex(doc *store.Doc) (stepIndex, error) {
	var index stepIndex
	if doc == nil {
		return index, nil
	}
	if err := json.Unmarshal(doc.Body, &index); err != nil {
		return index, txn.Corrupt("step index", err)
	}
	return index, nil
}

func putStepIndex(u *txn.Tx, id base.UUID, index stepIndex) {
	body, _ := json.Marshal(index)
	u.PutDoc(store.Doc{DocRef: StepsRef(id), Body: body})
}

// putStep stores the result of a step (L149).
type putStep struct {
	caller txn.Caller
	id     base.GivenID
	fence  core.Fence
	step   string
	result core.Payload
	answer txn.StepAnswer
}

// PutStep stores the result of a step. The first write of a name wins.
func (e *Work) PutStep(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, name string, result core.Payload) (txn.StepAnswer, error) {
	if err := core.CheckStepArguments(name, result.Data); err != nil {
		return txn.StepAnswer{}, err
	}
	txn.SetDefault(&result.ContentType, base.DefaultContentType)
	if err := base.CheckContentType("result_content_type", result.ContentType); err != nil {
		return txn.StepAnswer{}, err
	}
	if err := f.Validate(); err != nil {
		return txn.StepAnswer{}, err
	}
	cmd := &putStep{caller: c, id: id, fence: f, step: name, result: result}
	return txn.Answered(&cmd.answer, e.Do(ctx, cmd))
}

func (s *putStep) Name() string { return "step" }

// Carried is the lease under which the command is sent; nil: none.
func (s *putStep) Carried() *core.Fence { return &s.fence }

// Subject is the execution that the command is about.
func (s *putStep) Subject() base.UUID { return s.id.UUID }

func (s *putStep) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, s.id.UUID)
	w.Docs = append(w.Docs, StepsRef(s.id.UUID), stepRef(s.id.UUID, 0, s.step))
}

// More looks for the name in the runs that the current one sees. The first of them was read already.
func (s *putStep) More(u *txn.Tx, w *store.Want) {
	ent, err := u.Find(s.caller, s.id)
	if err != nil {
		return
	}
	index, err := decodeStepIndex(u.Doc(StepsRef(s.id.UUID)))
	if err != nil {
		return
	}
	run := ent.Exec.RunIndex()
	for r := max(index.first(run), 1); r <= run; r++ {
		w.Docs = append(w.Docs, stepRef(s.id.UUID, r, s.step))
	}
}

func (s *putStep) Decide(u *txn.Tx) error {
	s.answer = txn.StepAnswer{}
	ent, err := u.Find(s.caller, s.id)
	if err != nil {
		return err
	}
	u.Settle(ent)
	if _, err := ent.Exec.CheckKeep(u.Effects(s.caller), s.fence); err != nil {
		return err
	}
	index, err := decodeStepIndex(u.Doc(StepsRef(s.id.UUID)))
	if err != nil {
		return err
	}
	run := ent.Exec.RunIndex()
	for r := index.first(run); r <= run; r++ {
		if doc := u.Doc(stepRef(s.id.UUID, r, s.step)); doc != nil {
			s.answer.Outcome = "exists"
			s.answer.Record, err = decodeStep(doc)
			return err
		}
	}
	if err := core.CheckStepCount(index.Count); err != nil {
		return err
	}
	s.write(u, ent.Exec, index)
	return nil
}

func (s *putStep) write(u *txn.Tx, x *core.Execution, index stepIndex) {
	record := core.StepRecord{
		ExecutionID: x.ID, RunIndex: x.RunIndex(), Name: s.step, Ordinal: index.Count, AttemptIndex: x.Attempt.Index,
		LeaseEpoch: s.fence.Epoch, CreatedAt: u.Now, ContentType: s.result.ContentType, Result: s.result.Data,
	}
	body, _ := json.Marshal(record)
	data := record.Result
	if data == nil {
		data = []byte{}
	}
	u.PutDoc(store.Doc{DocRef: stepRef(x.ID.UUID, x.RunIndex(), s.step), Body: body, Data: data})
	index.Count++
	putStepIndex(u, x.ID.UUID, index)
	s.answer = txn.StepAnswer{Outcome: "stored", Record: record}
}

func decodeStep(doc *store.Doc) (core.StepRecord, error) {
	var record core.StepRecord
	if err := json.Unmarshal(doc.Body, &record); err != nil {
		return record, txn.Corrupt("step", err)
	}
	record.Result = doc.Data
	return record, nil
}

// CheckSteps is the refusal of a replay that is to keep steps which cannot be found. Codes: corruption.
func CheckSteps(u *txn.Tx, id base.UUID, r ReplayRequest) error {
	if !r.KeepSteps {
		return nil
	}
	_, err := decodeStepIndex(u.Doc(StepsRef(id)))
	return err
}

// CarrySteps lets the current run of a replayed execution see what the run before saw (L150).
func CarrySteps(u *txn.Tx, x *core.Execution) error {
	index, err := decodeStepIndex(u.Doc(StepsRef(x.ID.UUID)))
	if err != nil {
		return err
	}
	if index.From == nil {
		index.From = map[int]int{}
	}
	index.From[x.RunIndex()] = index.first(x.RunIndex() - 1)
	putStepIndex(u, x.ID.UUID, index)
	return nil
}
