package server

import (
	"cmp"
	"context"
	"strconv"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveWork() {
	handle(s, wire.RegisterWorker, s.registerWorker)
	handle(s, wire.HeartbeatWorker, s.heartbeat)
	handle(s, wire.ClaimWork, s.claim)
	handle(s, wire.ClaimResumed, s.claimResumed)
	handle(s, wire.ReclaimExecution, s.reclaim)
	handle(s, wire.SendWork, s.sendWork)
}

// registerWorker makes an instance known (U60).
func (s *Server) registerWorker(ctx context.Context, r *wire.RegisterRequest) (answer, error) {
	b := r.Body
	if err := exchangeOf(ctx).mayWorkOn(b.Lanes...); err != nil {
		return answer{}, err
	}
	registered, err := s.client.Work().Register(ctx, flowfabric.Registration{
		WorkerID: b.WorkerID, InstanceID: b.WorkerInstanceID, Namespaces: b.Namespaces, Lanes: b.Lanes, Kinds: b.Kinds,
		Capabilities: b.Capabilities, MaxConcurrent: b.MaxConcurrent, LivenessTTL: millis(b.LivenessTTLMS), Version: b.Version, Labels: b.Labels,
	})
	return shows(registered), err
}

// heartbeat keeps an instance and its leases alive (U61).
func (s *Server) heartbeat(ctx context.Context, r *wire.HeartbeatRequest) (answer, error) {
	leases := make([]flowfabric.Lease, len(r.Body.Leases))
	for i, held := range r.Body.Leases {
		leases[i] = leaseOf(held.LeaseRef)
		leases[i].ExecutionID = flowfabric.ID(held.ExecutionID)
	}
	beat, err := s.client.Work().Heartbeat(ctx, r.Instance, leases)
	return shows(beat), err
}

func leaseOf(l wire.LeaseRef) flowfabric.Lease {
	return flowfabric.Lease{ID: l.LeaseID, Epoch: l.Epoch, AttemptID: l.AttemptID}
}

// claim takes work, waiting while there is none (U62). A server that drains takes none.
func (s *Server) claim(ctx context.Context, r *wire.ClaimRequest) (answer, error) {
	b := r.Body
	if err := exchangeOf(ctx).mayWorkOn(b.Lanes...); err != nil {
		return answer{}, err
	}
	request := flowfabric.ClaimRequest{
		WorkerID: b.WorkerID, InstanceID: b.WorkerInstanceID, Lanes: b.Lanes, Max: b.Max, Wait: millis(b.WaitMS), Capabilities: b.Capabilities,
		Kinds: b.Kinds, Namespaces: b.Namespaces, LaneOrder: b.LaneOrder, LeaseTTL: millis(b.LeaseTTLMS),
		Brief: b.Brief, Repeat: exchangeOf(ctx).isRepeat(),
	}
	var claimed flowfabric.ClaimAnswer
	take := func(ctx context.Context) (err error) {
		claimed, err = s.client.Work().Claim(ctx, request)
		return err
	}
	var err error
	switch {
	case s.drains() && request.Repeat: // its empty answer would be on record nowhere
		err = refuse("shutting_down", "the server takes no work any more")
	case s.drains():
	case request.Wait > 0:
		_, err = s.until(ctx, s.claims, request.Wait+claimSlack, take)
	default:
		err = take(ctx)
	}
	if err != nil {
		return answer{}, err
	}
	if b.Encoding == wire.EncodingBytes {
		for _, task := range claimed.Tasks {
			taskAsBytes(task)
		}
	}
	return shows(claimed), nil
}

// claimSlack lets the engine end the wait of a claim by its own clock.
const claimSlack = eventWait

// targeted takes one particular execution (U63).
func (s *Server) targeted(
	ctx context.Context, r *wire.TargetedClaimRequest,
	take func(context.Context, flowfabric.ID, flowfabric.TargetedClaim) (*flowfabric.Claimed, error),
) (answer, error) {
	b := r.Body
	id := flowfabric.ID(r.ID)
	if err := s.mayTake(ctx, id); err != nil {
		return answer{}, err
	}
	claimed, err := take(ctx, id, flowfabric.TargetedClaim{
		WorkerID: b.WorkerID, InstanceID: b.WorkerInstanceID, Capabilities: b.Capabilities, Lane: b.Lane, LeaseTTL: millis(b.LeaseTTLMS),
	})
	return taskShown(claimed, b.Encoding, err)
}

func (s *Server) claimResumed(ctx context.Context, r *wire.TargetedClaimRequest) (answer, error) {
	return s.targeted(ctx, r, s.client.Work().ClaimResumed)
}

func (s *Server) reclaim(ctx context.Context, r *wire.TargetedClaimRequest) (answer, error) {
	return s.targeted(ctx, r, s.client.Work().Reclaim)
}

// taskShown answers with a task.
func taskShown(task *flowfabric.Claimed, encoding wire.Encoding, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	if encoding == wire.EncodingBytes {
		taskAsBytes(task)
	}
	return shows(task), nil
}

// taskAsBytes makes a task show its payloads as base64 (U9).
func taskAsBytes(task *flowfabric.Claimed) {
	task.Input, task.Resume = task.Input.AsBytes(), resumeAsBytes(task.Resume)
	for i := range task.Inputs {
		task.Inputs[i].Result = task.Inputs[i].Result.AsBytes()
	}
}

// maxWorkItems bounds a batch (U20).
const maxWorkItems = wire.MaxWorkItems

// sendWork sends commands of many executions (U77).
func (s *Server) sendWork(ctx context.Context, r *wire.SendWorkRequest) (answer, error) {
	if n := len(r.Body.Items); n > maxWorkItems {
		return answer{}, refuse("batch_too_large", "the batch has too many items").at("/items").current("limit", maxWorkItems)
	}
	x := exchangeOf(ctx)
	key := x.caller.OnceKey()
	x.caller.RequestKey = "" // it names each item by its index: two of one execution are not repeats of each other
	ctx = x.acting(ctx)
	items := make([]flowfabric.WorkItem, len(r.Body.Items))
	for i := range r.Body.Items {
		item, err := workItemOf(&r.Body.Items[i], itemKey(key, i))
		if err == nil && item.Op == flowfabric.OpSpawn {
			err = s.spawnInto(ctx, &item, r.Body.Items[i].Children, r.Body.Items[i].SpawnFields)
		}
		if err != nil {
			return answer{}, err
		}
		items[i] = item
	}
	answers, err := s.client.Work().Do(ctx, items...)
	if err != nil {
		return answer{}, err
	}
	all := wire.ItemsFor[workShown](len(answers))
	secret := false
	for i, a := range answers {
		if a.Usage != nil && r.Body.Items[i].DedupKey == "" { // a repeat that was only known by the key of its request has the first answer (U13)
			*a.Usage = a.Usage.First()
		}
		shown := s.workShown(x, a, r.Encoding)
		secret = secret || shown.tokens != nil
		refusal := asSent(asSent(a.Err, "idempotency_key", r.Body.Items[i].IdempotencyKey), "dedup_key", r.Body.Items[i].DedupKey)
		all.Add(shown, s.itemProblem(x, refusal))
	}
	if secret {
		return unstored(all), nil
	}
	return shows(all), nil
}

// itemKey names what an item of a batch makes by the key of the request; "" without one.
func itemKey(key string, index int) string {
	if key == "" {
		return ""
	}
	return key + "/" + strconv.Itoa(index)
}

// workItemOf is a command for the client. key names what it makes, unless it brings a name of its own.
func workItemOf(w *wire.WorkItem, key string) (flowfabric.WorkItem, error) {
	item := flowfabric.WorkItem{
		Op: flowfabric.Op(w.Op), ID: flowfabric.ID(w.ExecutionID), Lease: leaseOf(w.Lease), TTL: millis(w.TTLMS), Percent: w.Percent,
		Result: payloadOf(w.ResultFields.Payload()), Class: w.Class, Category: w.Category, Detail: payloadOf(w.DetailFields.Payload()),
		Reason: w.Reason, Step: w.Name,
	}
	if w.Message != nil {
		item.Message = *w.Message
	}
	item.RetryAfter = durationOf(w.RetryAfterMS)
	delayInto(&item, w.DelayFields)
	item.Usage.Amounts = w.Usage
	var err error
	switch item.Op {
	case flowfabric.OpSuspend:
		item.Suspension = suspensionOf(w.SuspendFields, *w.ResumeCondition, cmp.Or(w.IdempotencyKey, key))
	case flowfabric.OpUsage:
		item.Usage.DedupKey, item.Usage.AlreadySpent = cmp.Or(w.DedupKey, key), w.AlreadySpent
	case flowfabric.OpWaitChildren:
		item.Children = childrenOptions(w.ChildrenWaitFields, w.TimeoutMS)
	case flowfabric.OpWaitpoint:
		item.Waitpoint = newWaitpointOf(w.WaitpointKey, w.ExpiryFields, cmp.Or(w.IdempotencyKey, key))
	}
	return item, err
}
