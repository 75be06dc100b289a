package txn

import (
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Worker is the record of an instance, nil when it is not known.
func (u *Tx) Worker(instanceID string) (*core.Worker, error) {
	return DecodeWorker(u.Doc(WorkerRef(instanceID)))
}

// DecodeWorker reads the record of a worker instance. Codes: corruption.
func DecodeWorker(doc *store.Doc) (*core.Worker, error) {
	if doc == nil {
		return nil, nil
	}
	var w core.Worker
	if err := json.Unmarshal(doc.Body, &w); err != nil {
		return nil, Corrupt("worker", err)
	}
	return &w, nil
}

// PutWorker writes the record of an instance, which must be locked if there is one.
func (u *Tx) PutWorker(w *core.Worker) { u.PutOrAdd(u.workerDoc(w)) }

// workerDoc is the record of an instance. It arms the next look at it, unless one that comes no later is armed: the doc's
// ExpiresAt is the time of the armed look.
func (u *Tx) workerDoc(w *core.Worker) store.Doc {
	body, _ := json.Marshal(w)
	ref := WorkerRef(w.InstanceID)
	next := RoundUp(max(w.NextLook(), u.Now+1), base.Second)
	armed := next
	if doc := u.Doc(ref); doc != nil && doc.ExpiresAt > u.Now && doc.ExpiresAt <= next {
		armed = doc.ExpiresAt
	} else {
		timer := u.TimerAt(TimerWorkers, next)
		timer.Texts = append(timer.Texts, w.InstanceID)
	}
	return store.Doc{DocRef: ref, Body: body, ExpiresAt: armed}
}

// Instances reads the records of all instances.
func (e *Engine) Instances(ctx context.Context) ([]core.Worker, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocWorker}}})
	if err != nil {
		return nil, PublicFault(err)
	}
	all := make([]core.Worker, 0, len(loaded.Scanned[0]))
	for i := range loaded.Scanned[0] {
		w, err := DecodeWorker(&loaded.Scanned[0][i])
		if err != nil {
			return nil, err
		}
		all = append(all, *w)
	}
	return all, nil
}

// NotRegistered returns the refusal of an instance that is not known. Code: worker_not_registered.
func NotRegistered(instanceID string) error {
	return base.Errorf(base.CodeWorkerNotRegistered, "no instance %q", instanceID)
}

// WorkerState returns how an instance is shown at a time: live, draining or dead.
func WorkerState(w *core.Worker, now base.Time) string {
	switch {
	case !w.Live(now):
		return "dead"
	case w.Draining:
		return "draining"
	default:
		return "live"
	}
}

// Claimant is the record of the instance that a claim names, nil when it is not known, if the claim may be served.
func (u *Tx) Claimant(c Caller, workerID, instanceID string) (*core.Worker, error) {
	w, err := u.Worker(instanceID)
	switch {
	case err != nil || w == nil:
		return nil, err
	case !c.SeesWorker(w) && !w.OwnedBy(c.Registrant()):
		return nil, core.InstanceTaken()
	}
	return w, w.CheckClaim(u.Now, workerID, c.Registrant())
}

// Target is claimant for a grant to an instance, which need not be the caller's.
func (u *Tx) Target(c Caller, workerID, instanceID string) (*core.Worker, error) {
	w, err := u.Worker(instanceID)
	switch {
	case err != nil || w == nil:
		return nil, err
	case !c.SeesWorker(w):
		return nil, core.InstanceTaken()
	}
	return w, w.CheckTarget(u.Now, workerID)
}
