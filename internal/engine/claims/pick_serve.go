package claims

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// serveAll serves the calls in order of their arrival (S18).
func (k *pick) serveAll(u *txn.Tx) {
	// The turns of fairness keys advance with each row that is given, and are held until all calls are served, so that a round that was begun stays
	// valid. They are memory of this process alone: if the transaction fails, keys have used up turns for nothing, which evens out.
	k.loadRepeats(u)
	k.p.turning.Lock()
	defer k.p.turning.Unlock()
	for _, call := range k.calls {
		k.call = call
		k.serve(u, call)
		k.call, u.Row = nil, base.UUID{}
	}
}

// loadRepeats loads what repeated calls got when they were first answered. Their records are locked first: if none of those leases is held any
// more, the calls get new work, and the same calls at another server must see which.
func (k *pick) loadRepeats(u *txn.Tx) {
	var repeats []*claim
	locked := store.Want{LockDocs: true}
	for _, call := range k.calls {
		if ref := claimRef(&call.req); call.req.RequestKey != "" && u.Doc(ref) != nil {
			repeats, locked.Docs = append(repeats, call), append(locked.Docs, ref)
		}
	}
	for _, ref := range locked.Docs {
		delete(u.Docs, ref)
	}
	err := u.Load(u.Engine.Background(), locked)
	for _, call := range repeats {
		doc := u.Doc(claimRef(&call.req))
		if doc != nil && err == nil {
			err = doc.Whole()
		}
		if doc != nil && err == nil {
			err = u.Load(u.Engine.Background(), store.Want{Executions: claimedIDs(doc), Inputs: true, SkipUnreadable: true})
		}
		if err != nil {
			k.errs[call] = txn.PublicFault(err)
		}
	}
}

// serve gives a call what it asked for, as far as there is work (S18). A repeated call gets the leases it got before (L117), also while its
// instance drains: they are not new work, and would lapse without being noticed.
func (k *pick) serve(u *txn.Tx, call *claim) {
	if k.errs[call] != nil || !k.signs(u, call) || !k.admitWorker(u, call) || k.repeat(u, call) || k.drain[call] || k.isOver(u, call) {
		return
	}
	k.fields = k.fieldsOf(u, call)
	for room := maxClaimBytes; len(k.given[call]) < call.req.Max; {
		a, took := k.next(u, call, room)
		if a == nil {
			break
		}
		row := a.rows[0]
		// The row is off the queue whether or not it is admitted: a refused one is blocked under its key, and is not offered to the next call.
		a.rows, a.last = a.rows[1:], row.Order
		k.noteDry(a)
		ent := u.Entries[row.ID]
		u.At("claim", row.ID)
		if !k.admitted(u, a, ent) {
			continue
		}
		took()
		room -= ent.Exec.Input.Size
		k.take(u, call, a, ent)
	}
	switch {
	case len(k.given[call]) > 0 && call.req.RequestKey != "":
		k.recordClaim(u, call)
	// Only a repeat is closed: its first try may still wait at another server, and must get nothing from now on (claim_closed.go).
	case len(k.given[call]) == 0 && call.closing:
		k.closeClaim(u, call)
	}
}

// admitWorker counts the claim as a sign of life of its instance (S50). A dead instance gets nothing until it registers again (S52). A draining one
// is answered with a drain notice (S53).
func (k *pick) admitWorker(u *txn.Tx, call *claim) bool {
	find := u.Claimant
	if call.grants() {
		find = u.Target
	}
	worker, err := find(call.caller, call.req.WorkerID, call.req.InstanceID)
	if err != nil {
		k.errs[call] = err
		return false
	}
	if k.bystand[call] = call.grants() && (worker == nil || !worker.OwnedBy(call.caller.Registrant())); k.bystand[call] {
		k.drain[call] = worker != nil && worker.Draining
		return true // a grant to an instance of another caller is no sign of life of that instance, and does not change its owner
	}
	if call.cameBefore(worker) {
		call.since, k.drain[call] = worker.LeasedSince(), true
		return true
	}
	if worker != nil && !worker.Live(u.Now) && !k.refresh {
		k.lapsed[call] = true
		return false // its record must be written, and is not locked: the next look locks it
	}
	if worker, err = k.seen(u, call, worker); err != nil {
		k.errs[call] = err
		return false
	}
	call.since = worker.LeasedSince()
	if k.drain[call] = worker.Draining; !worker.Draining { // otherwise every claim of it is looked at, so that every answer has the drain notice
		k.workers[call.req.InstanceID], k.docs[call.req.InstanceID] = worker, u.Doc(txn.WorkerRef(call.req.InstanceID))
	}
	return true
}

// seen records that the claim's instance is alive. An instance that is not registered, or that another worker has left, is registered with the
// values of the claim (S50).
func (k *pick) seen(u *txn.Tx, call *claim, worker *core.Worker) (*core.Worker, error) {
	fx, by := u.Effects(call.caller), call.caller.Registrant()
	if worker != nil && worker.WorkerID == call.req.WorkerID && worker.OwnedBy(by) {
		if k.refresh && worker.Claimed(fx, by) {
			u.PutWorker(worker)
			u.Keep(fx)
		}
		return worker, nil
	}
	r := core.Registration{
		WorkerID: call.req.WorkerID, InstanceID: call.req.InstanceID, Lanes: call.req.Lanes, Kinds: call.req.Kinds,
		Namespaces: call.req.Namespaces, Capabilities: call.req.Capabilities, MaxConcurrent: call.req.Max,
	}
	if err := r.Normalize(); err != nil {
		return nil, err
	}
	registered, _, _, err := core.RegisterWorker(fx, worker, r, by)
	if err != nil {
		return nil, err
	}
	u.PutWorker(&registered)
	u.Keep(fx)
	return &registered, nil
}

// repeat answers a claim that was answered before with the leases that are still held (L117). It reports whether there is one.
func (k *pick) repeat(u *txn.Tx, call *claim) bool {
	if call.req.RequestKey == "" {
		return false
	}
	doc := u.Doc(claimRef(&call.req))
	if doc == nil {
		return false
	}
	for _, id := range claimedIDs(doc) {
		ent := u.Entries[id]
		if ent == nil || !call.has(ent.Exec) || !call.caller.Sees(ent.Exec.Class.Namespace) {
			continue
		}
		u.Settle(ent)
		if call.has(ent.Exec) {
			k.hadBefore(u, call, ent)
		}
	}
	if len(k.given[call]) == 0 {
		return false
	}
	call.caller.Again()
	return true
}

// claimedIDs returns the executions that the record of a claim names.
func claimedIDs(doc *store.Doc) []base.UUID {
	ids := make([]base.UUID, len(doc.Data)/len(base.UUID{}))
	for i := range ids {
		ids[i] = base.UUID(doc.Data[i*len(base.UUID{}):])
	}
	return ids
}

// recordClaim records which leases a claim got. The record is kept as long as one of them is held.
func (k *pick) recordClaim(u *txn.Tx, call *claim) {
	ids := make([]byte, 0, len(base.UUID{})*len(k.given[call]))
	for _, t := range k.given[call] {
		ids = append(ids, t.ent.Exec.ID.UUID[:]...)
	}
	ref := claimRef(&call.req)
	// Another server may be serving the same call, and a hand-over has not checked whether the call was answered before. In both cases the record
	// exists already, this transaction fails with Conflict, and the next pick answers the repeat.
	u.PutOrAdd(store.Doc{DocRef: ref, Body: []byte("{}"), Data: ids})
	timer := u.TimerAt(timerClaims, txn.RoundUp(u.Now.Add(txn.ClaimRecordLook), base.Second))
	timer.Texts = append(timer.Texts, ref.Key)
}

// next returns the queue with the best row for the call: in the lane whose turn it is, under the fairness key whose turn it is, the lowest order
// key (S18, S24). It returns nil if there is nothing more for this call. If the answer has no room for that row, neither it nor a row behind it is
// taken, and the turn is not used up.
func (k *pick) next(u *txn.Tx, call *claim, room int) (best *askedQueue, took func()) {
	field := k.nextLane(u, call)
	if field == nil || k.driedUp(call) || k.turnedAway(call) {
		return nil, nil
	}
	if best, took = field.first(), func() {}; field.keys != nil {
		best, took = field.fairest()
	}
	if best != nil && !k.fits(u, call, best.rows[0], room) {
		return nil, nil
	}
	k.p.lastFor = field.lane.Name
	return best, took
}

// weightsOf returns the weights of a lane's fairness keys (S2).
func weightsOf(lane *core.Lane) func(key string) int {
	return func(key string) int { return lane.Settings.FairnessWeights[key] }
}

// nextLane returns the lane that serves the call next: rotating from the one served last, or the first listed (S18).
func (k *pick) nextLane(u *txn.Tx, call *claim) *laneField {
	lanes := call.req.Lanes
	start := 0
	if call.req.LaneOrder == "rotate" {
		start = slices.Index(lanes, k.p.lastFor) + 1
	}
	for i := range lanes {
		field := k.fields[lanes[(start+i)%len(lanes)]]
		if field != nil && u.HasPlace(field.lane) && !field.empty() {
			return field
		}
	}
	return nil
}

// take leases the execution to the call's worker (S20).
func (k *pick) take(u *txn.Tx, call *claim, a *askedQueue, ent *txn.Row) {
	fx := u.Effects(txn.Caller{Principal: call.req.WorkerID, Actor: "worker", RequestID: call.caller.RequestID})
	fx.Now = max(fx.Now, ent.Exec.LastMutationAt)
	lane := u.LaneNamed(a.class.Lane)
	u.TakePlace(lane, ent.Exec)
	if limits.Limits(u, ent.Exec) {
		ent.Exec.TakeRoom(fx, limits.Room(u), limits.BudgetsOf(u.Dict, ent.Exec))
	}
	if call.grants() {
		k.promise(u, fx, call, ent)
		return
	}
	ent.Acquiring(fx.Now)
	got := ent.Exec.Acquire(fx, core.Acquisition{
		LeaseID: u.Engine.MintMarked(), AttemptID: u.Engine.MintMarked(), WorkerID: call.req.WorkerID, InstanceID: call.req.InstanceID,
		TTL: call.req.TTL, RequestKey: call.req.RequestKey,
	})
	u.Touch(ent)
	u.Keep(fx)
	k.given[call] = append(k.given[call], grantedTask{ent: ent, got: got})
}

// fair reports whether the lane shares its turns between keys (S24).
func fair(lane *core.Lane) bool { return lane.Settings.Fairness != core.FairnessOff }

// howAcquired returns how the current lease was acquired, for the answer to a repeated claim.
func howAcquired(x *core.Execution) core.Acquired {
	switch {
	case x.Attempt.FirstEpoch != x.LeaseEpoch:
		return core.Acquired{How: "resumed", ResumedFrom: x.Attempt.Interruption}
	case x.Attempt.Type == core.AttemptReclaim:
		return core.Acquired{How: "reclaimed"}
	default:
		return core.Acquired{How: "fresh"}
	}
}
