package server

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveWork() {
	handle(s, wire.RegisterWorker, s.registerWorker)
	handle(s, wire.ClaimWork, s.claim)
	passTargeted(s, wire.ClaimResumed)
	passTargeted(s, wire.ReclaimExecution)
	handle(s, wire.SendWork, s.sendWork)
}

// registerWorker makes an instance known (U60).
func (s *Server) registerWorker(ctx context.Context, x *exchange, r *wire.RegisterRequest) (answer, error) {
	if err := x.mayWorkOn(r.Body.Lanes...); err != nil {
		return answer{}, err
	}
	registered, err := ask(ctx, s, x.by, wire.RegisterWorker, r)
	return shows(registered), err
}

// claim takes work, waiting while there is none (U62). A server that drains takes none.
func (s *Server) claim(ctx context.Context, x *exchange, r *wire.ClaimRequest) (answer, error) {
	if err := x.mayWorkOn(r.Body.Lanes...); err != nil {
		return answer{}, err
	}
	claimed := &api.ClaimAnswer{}
	if err := s.take(ctx, x, wire.ClaimWork.Operation, r, claimed, r.Body.Wait); err != nil {
		return answer{}, err
	}
	if r.Body.Encoding == wire.EncodingBytes {
		for _, task := range claimed.Tasks {
			taskAsBytes(task)
		}
	}
	return shows(claimed), nil
}

// claimSlack lets the engine end the wait of a claim by its own clock.
const claimSlack = eventWait

// take takes or promises work, waiting while there is none. An answer that is not filled in says that there is none.
func (s *Server) take(ctx context.Context, x *exchange, op *wire.Operation, request, answer any, wait time.Duration) error {
	again := x.isRepeat()
	by := x.by
	by.Again = again
	do := func(ctx context.Context) error { return s.on.Do(ctx, by, op, request, answer) }
	switch {
	case s.drains() && again: // its empty answer would be on record nowhere
		return refuse("shutting_down", "the server takes no work any more")
	case s.drains():
		return nil
	case wait > 0:
		_, err := s.until(ctx, x, s.claims, wait+claimSlack, do)
		return err
	default:
		return do(ctx)
	}
}

// passTargeted takes one particular execution (U63).
func passTargeted(s *Server, call wire.Call[wire.TargetedClaimRequest, api.Claimed]) {
	handle(s, call, func(ctx context.Context, x *exchange, r *wire.TargetedClaimRequest) (answer, error) {
		if err := s.mayTake(ctx, x, api.ID(r.ID)); err != nil {
			return answer{}, err
		}
		claimed, err := ask(ctx, s, x.by, call, r)
		return taskShown(claimed, r.Body.Encoding, err)
	})
}

// taskShown answers with a task.
func taskShown(task *api.Claimed, encoding wire.Encoding, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	if encoding == wire.EncodingBytes {
		taskAsBytes(task)
	}
	return shows(task), nil
}

// taskAsBytes encodes the payloads of a task as base64 (U9).
func taskAsBytes(task *api.Claimed) {
	task.Input, task.Resume = task.Input.AsBytes(), resumeAsBytes(task.Resume)
	for i := range task.Inputs {
		task.Inputs[i].Result = task.Inputs[i].Result.AsBytes()
	}
}

// maxWorkItems bounds a batch (U20).
const maxWorkItems = wire.MaxWorkItems

// sendWork sends commands of many executions (U77).
func (s *Server) sendWork(ctx context.Context, x *exchange, r *wire.SendWorkRequest) (answer, error) {
	if n := len(r.Body.Items); n > maxWorkItems {
		return answer{}, refuse("batch_too_large", "the batch has too many items").at("/items").current("limit", maxWorkItems)
	}
	x.caller.RequestKey = "" // it names what each item makes, and not the answer: that is never a replayed one
	batch := wire.WorkBatch{Items: make([]api.WorkItem, len(r.Body.Items))}
	for i := range r.Body.Items {
		batch.Items[i] = r.Body.Items[i].Item()
		if spawn := batch.Items[i].Spawn; spawn != nil {
			if err := s.keys.submit(ctx, x.caller.Namespace, nodesIn(spawn.Children)); err != nil {
				return answer{}, err
			}
		}
	}
	answers, err := ask(ctx, s, x.by, wire.DoWork, &batch)
	if err != nil {
		return answer{}, err
	}
	all := wire.ItemsFor[workShown](len(*answers))
	secret := false
	for i, a := range *answers {
		shown := s.workShown(x, a, r.Encoding)
		secret = secret || shown.tokens != nil
		refusal := asSent(asSent(a.Err, "idempotency_key", r.Body.Items[i].IdempotencyKey), "request_key", "")
		all.Add(shown, s.itemProblem(x, refusal))
	}
	if secret {
		return unstored(all), nil
	}
	return shows(all), nil
}
