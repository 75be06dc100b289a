package model

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// taken is what a claim tells of one execution.
type taken struct {
	ID          base.ID
	Fence       core.Fence
	Index       int
	How         string
	ResumedFrom core.Interruption
	ExpiresAt   base.Time
	Input       string
	Waited      string // the wait that is over
}

func takenOf(x *core.Execution, got core.Acquired, o *core.Observation) taken {
	return taken{
		ID: x.ID, Fence: fenceOf(x), Index: x.Attempt.Index, How: got.How, ResumedFrom: got.ResumedFrom,
		ExpiresAt: x.Lease.ExpiresAt, Input: string(x.Input.Data), Waited: observed(o),
	}
}

func fenceOf(x *core.Execution) core.Fence {
	return core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
}

// claimed is the answer to a claim.
type claimed struct {
	Tasks []taken
	Drain bool
}

// claim is S15..S21.
func (m *reference) claim(c engine.Caller, r engine.ClaimRequest) (claimed, error) {
	namespaces := c.Namespaces
	if r.Namespaces != nil {
		namespaces = slices.DeleteFunc(slices.Clone(r.Namespaces), func(name string) bool { return !sees(c, name) })
		if len(namespaces) == 0 {
			return claimed{}, base.Errorf(base.CodeNamespaceForbidden, "none of the caller's")
		}
	}
	if m.workers[r.InstanceID] == nil {
		m.workers[r.InstanceID] = &worker{namespaces: namespaces, owner: c.Principal}
	}
	w := m.workers[r.InstanceID]
	if err := w.claims(c); err != nil {
		return claimed{}, err
	}
	queue := m.queue()
	if again := m.repeatClaim(c, r); w.draining || len(again.Tasks) > 0 {
		again.Drain = w.draining
		return again, nil
	}
	var answer claimed
	for len(answer.Tasks) < max(r.Max, 1) {
		best := m.pick(c, r, queue)
		if best == nil {
			break
		}
		lane := m.lanes[best.x.Class.Lane]
		m.last = lane.Name
		takePlace(lane, best.x)
		fx := m.effects(engine.Caller{Principal: r.WorkerID, Actor: "worker", RequestID: c.RequestID})
		fx.Now = best.now(fx.Now)
		got := best.x.Acquire(fx, core.Acquisition{
			LeaseID: m.ids.next(), AttemptID: m.ids.next(), WorkerID: r.WorkerID, InstanceID: r.InstanceID, TTL: r.TTL, RequestKey: r.RequestKey,
		})
		m.keep(best, fx)
		answer.Tasks = append(answer.Tasks, m.took(best, got))
	}
	for _, name := range r.Lanes {
		m.rest(name, queue, max(r.Max, 1))
	}
	if r.RequestKey != "" && len(answer.Tasks) > 0 {
		var ids []base.UUID
		for _, t := range answer.Tasks {
			ids = append(ids, t.ID.UUID)
		}
		m.claims[r.InstanceID+" "+r.RequestKey] = ids
	}
	return answer, nil
}

// queue is what a claim looks at: what stood in the queues when it began. What its own look at earlier leases sets free is for
// the next claim.
func (m *reference) queue() []*record {
	var ready []*record
	for _, id := range m.sorted() {
		if r := m.records[id]; r.x.Status == core.Ready {
			ready = append(ready, r)
		}
	}
	return ready
}

// hasOverdue reports whether something stands in the queues of these lanes that a timer has moved since.
func (m *reference) hasOverdue(lanes []string) bool {
	return slices.ContainsFunc(m.queue(), func(rec *record) bool {
		later, _ := m.settled(rec)
		return later.x.Status != core.Ready && slices.Contains(lanes, rec.x.Class.Lane)
	})
}

// holdsLeases reports whether a lease of a claim with this key is held.
func (m *reference) holdsLeases(instance, key string) bool {
	return slices.ContainsFunc(m.claims[instance+" "+key], func(id base.UUID) bool {
		rec := m.records[id]
		return rec != nil && rec.x.HoldsLeaseOf(instance, key)
	})
}

// repeatClaim finds the leases of an earlier claim with the same key that are still held (L117), of executions that the caller
// may see (I14).
func (m *reference) repeatClaim(c engine.Caller, r engine.ClaimRequest) claimed {
	var answer claimed
	for _, id := range m.claims[r.InstanceID+" "+r.RequestKey] {
		rec := m.records[id]
		if rec == nil || !rec.x.HoldsLeaseOf(r.InstanceID, r.RequestKey) || !sees(c, rec.x.Class.Namespace) {
			continue
		}
		m.settle(rec)
		if rec.x.HoldsLeaseOf(r.InstanceID, r.RequestKey) {
			answer.Tasks = append(answer.Tasks, m.took(rec, heldHow(rec.x)))
		}
	}
	return answer
}

// heldHow tells how the present lease was acquired.
func heldHow(x *core.Execution) core.Acquired {
	switch {
	case x.Attempt.FirstEpoch < x.LeaseEpoch:
		return core.Acquired{How: "resumed", ResumedFrom: x.Attempt.Interruption}
	case x.Attempt.Type == core.AttemptReclaim:
		return core.Acquired{How: "reclaimed"}
	default:
		return core.Acquired{How: "fresh"}
	}
}

// pick is the one execution that a claim takes next (S17, S18, SI3): the lane whose turn it is, in it the lowest order key.
func (m *reference) pick(c engine.Caller, r engine.ClaimRequest, queue []*record) *record {
	first := 0
	if r.LaneOrder != "listed" {
		first = slices.Index(r.Lanes, m.last) + 1
	}
	for i := range r.Lanes {
		name := r.Lanes[(first+i)%len(r.Lanes)]
		var candidates []*record
		for _, rec := range queue {
			if rec.x.Class.Lane == name && m.candidate(c, r, rec) {
				candidates = append(candidates, rec)
			}
		}
		if len(candidates) > 0 {
			return slices.MinFunc(m.inTurn(name, candidates), m.compare)
		}
	}
	return nil
}

// candidate reports whether a claim may take an execution (S17): it was put into the queue, no timer has moved it since, it
// matches, and its lane is open.
func (m *reference) candidate(c engine.Caller, r engine.ClaimRequest, rec *record) bool {
	class, lane := rec.x.Class, m.lanes[rec.x.Class.Lane]
	if rec.x.Status != core.Ready || !lane.Settings.State.Claimable() || lane.Counting {
		return false
	}
	if limit := lane.Settings.MaxConcurrent; limit > 0 && m.places(lane.Name) >= limit {
		return false
	}
	if later, _ := m.settled(rec); later.x.Status != core.Ready {
		return false
	}
	return (r.Kinds == nil || slices.Contains(r.Kinds, class.Kind)) &&
		(r.Namespaces == nil || slices.Contains(r.Namespaces, class.Namespace)) &&
		sees(c, class.Namespace) &&
		len(core.MissingCapabilities(class.Capabilities, r.Capabilities)) == 0
}

// places counts who holds a place of a lane.
func (m *reference) places(lane string) int {
	n := 0
	for _, r := range m.records {
		if slices.Contains(r.x.Holds, "lane:"+lane) {
			n++
		}
	}
	return n
}

// compare is the order of S6.
func (m *reference) compare(a, b *record) int {
	ageing := m.lanes[a.x.Class.Lane].Settings.AgeingMS
	return cmp.Or(cmp.Compare(a.x.RankKey(ageing), b.x.RankKey(ageing)), bytes.Compare(a.x.ID.UUID[:], b.x.ID.UUID[:]))
}

// target is a targeted claim (S34, S35).
func (m *reference) target(c engine.Caller, op string, id base.GivenID, r engine.TargetedRequest) (taken, error) {
	rec, err := m.find(c, id)
	if err != nil {
		return taken{}, err
	}
	m.settle(rec)
	if w := m.workers[r.InstanceID]; w != nil && op != "operator_claim" {
		if err := w.claims(c); err != nil {
			return taken{}, err
		}
	}
	if rec.x.HoldsLeaseOf(r.InstanceID, r.RequestKey) {
		return m.took(rec, heldHow(rec.x)), nil
	}
	check := map[string]func(*core.Execution, core.Targeted) error{
		"claim_resumed": (*core.Execution).CheckClaimResumed, "reclaim": (*core.Execution).CheckReclaim, "operator_claim": (*core.Execution).CheckOperatorClaim,
	}[op]
	var answer taken
	err = m.apply(c, rec, func(rec *record, fx *core.Effects) error {
		lane := m.lanes[rec.x.Class.Lane]
		if err := check(rec.x, core.Targeted{Lane: lane, GivenLane: r.Lane, Capabilities: r.Capabilities, Force: r.Force}); err != nil {
			return err
		}
		if limit := lane.Settings.MaxConcurrent; limit > 0 && !r.Force && m.places(lane.Name) >= limit {
			return base.Errorf(base.CodeAdmissionRefused, "full")
		}
		takePlace(lane, rec.x)
		if op != "operator_claim" {
			fx.Actor = core.Actor{Type: "worker", ID: r.WorkerID}
		}
		got := rec.x.Acquire(fx, core.Acquisition{
			LeaseID: m.ids.next(), AttemptID: m.ids.next(), WorkerID: r.WorkerID, InstanceID: r.InstanceID, TTL: r.TTL,
			RequestKey: r.RequestKey, Forced: r.Force,
		})
		answer = m.took(rec, got)
		return nil
	})
	return answer, err
}

// markDead is S52.
func (m *reference) markDead(c engine.Caller, instance string, take bool) error {
	w := m.workers[instance]
	if !w.seenBy(c) {
		return base.Errorf(base.CodeWorkerNotRegistered, "unknown")
	}
	w.marked = true
	if !take {
		return nil
	}
	for _, id := range m.sorted() {
		r := m.records[id]
		if r.x.Status != core.Running || r.x.Lease.InstanceID != instance {
			continue
		}
		m.settle(r)
		if r.x.Lease != nil && r.x.Lease.InstanceID == instance {
			fx := m.effects(c)
			fx.Now = r.now(fx.Now)
			r.x.LapseNow(fx)
			m.keep(r, fx)
		}
	}
	return nil
}
