package service

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) flows() {
	on(s, wire.ListFlows, s.listFlows)
	on(s, wire.GetFlow, s.getFlow)
	on(s, wire.GetGraph, s.getGraph)
	on(s, wire.ListFlowMembers, s.listMembers)
	on(s, wire.ListFlowEdges, s.listEdges)
	on(s, wire.GetFlowEdge, s.getEdge)
	on(s, wire.GetFlowUsage, s.getFlowUsage)
	on(s, wire.GetJoin, s.getJoin)
	on(s, wire.ListChildren, s.listChildren)
	s.submits()
	on(s, wire.ExtendFlow, s.extendFlow)
	on(s, wire.SealFlow, s.sealFlow)
	on(s, wire.CancelFlow, s.cancelFlow)
	on(s, wire.DeleteFlow, s.deleteFlow)
	on(s, wire.SetJoin, s.setJoin)
	on(s, wire.PatchFlowTags, s.patchFlowTags)
	on(s, wire.PutFlowTags, s.putFlowTags)
}

// submits registers the two calls of one operation: a dry run has an answer of its own.
func (s *Service) submits() {
	on(s, wire.CheckFlow, s.checkFlow)
	check := s.handlers[wire.CheckFlow.Operation]
	on(s, wire.SubmitFlow, s.submitFlow)
	submit := s.handlers[wire.SubmitFlow.Operation]
	s.handlers[wire.SubmitFlow.Operation] = func(ctx context.Context, c Caller, request, answer any) error {
		if _, dry := answer.(*wire.FlowChecked); dry {
			return check(ctx, c, request, answer)
		}
		return submit(ctx, c, request, answer)
	}
}

// submitFlow submits a graph, or creates an empty flow (U89). A flow without an id has the same one in all tries, so that a
// repeat finds what the first one made.
func (s *Service) submitFlow(ctx context.Context, c Caller, r *wire.SubmitFlowRequest) (api.FlowRun, error) {
	home, err := c.home()
	if err != nil {
		return api.FlowRun{}, err
	}
	flow := r.Body.FlowSubmission
	by := s.engine.SubmitFlow
	if r.Empty {
		if err := checkBare(&flow); err != nil {
			return api.FlowRun{}, err
		}
		by = s.engine.CreateFlow
	}
	minted := flow.FlowID == ""
	submission, derived, err := s.flowGiven(ctx, c, &flow, home)
	if err != nil {
		return api.FlowRun{}, err
	}
	submission.Trace = s.cfg.trace(ctx)
	answer, err := by(ctx, c.submitter(derived), submission)
	if err != nil {
		return api.FlowRun{}, sameRequest(AsGiven(err, graphOf(&flow)), derived)
	}
	run := flowRunOf(answer)
	if minted && (derived || !c.first()) && answer.Flow.ID.UUID == submission.ID.UUID {
		if derived && !run.Created && c.first() {
			who := c.client()
			who.Again()
		}
		run.Created = true // a try whose answer was lost had created it
	}
	return run, nil
}

// flowGiven converts a flow for the engine, with the id that it has or gets. derived reports whether that was derived from the
// request's key.
func (s *Service) flowGiven(ctx context.Context, c Caller, flow *wire.FlowSubmission, home string) (submission core.FlowSubmission, derived bool, err error) {
	if flow.FlowID == "" {
		if flow.FlowID, derived, err = s.flowID(ctx, c, home); err != nil {
			return core.FlowSubmission{}, false, err
		}
	}
	submission, err = coreFlow(flow, home)
	return submission, derived, err
}

// flowID returns the id for a flow without one. For a request with a key it is derived from the key, so that the same request
// again finds what it made (U13).
func (s *Service) flowID(ctx context.Context, c Caller, home string) (id string, derived bool, err error) {
	if minted, ok := base.ParseUUID(c.Key); ok && c.RequestKey == "" {
		return minted.String(), false, nil
	}
	d := engine.Derivation{Namespace: home, RequestKey: cmp.Or(c.RequestKey, c.Key), Flow: true}
	uuid, err := s.engine.DerivedID(ctx, c.client(), d)
	return uuid.String(), c.RequestKey != "", err
}

// submitter returns the caller as a submitter. The request's key is used only if ids were derived from it: a submission with an
// id of its own is identified by that (L117), without the cost of a record. A further try of our own is not a repeat.
func (c *Caller) submitter(derived bool) engine.Caller {
	who := c.client()
	if !derived {
		who.RequestKey = ""
	}
	if !c.first() {
		who.Repeated = nil
	}
	return who
}

// sameRequest converts the conflict of an id that was derived from the request's key, or of what is recorded under it, to that of
// the key (U13). For a batch it keeps the index of the refused item.
func sameRequest(err error, derived bool) error {
	var refusal *base.Error
	if !derived || !errors.As(err, &refusal) {
		return err
	}
	if refusal.Code != base.CodeFlowAlreadyExists && refusal.Code != base.CodeIDConflict && refusal.Field != requestKey {
		return err
	}
	conflict := base.Errorf(base.CodeIdempotencyConflict, "the key was used for another request").
		WithField("header.Idempotency-Key").WithHint("use a new key for new work")
	if index, ok := refusal.Details[detailIndex]; ok {
		conflict = conflict.With(detailIndex, index)
	}
	return conflict
}

// requestKey is the name of a request's key in validation errors.
const requestKey = "request_key"

// checkFlow validates a flow as a submit does but writes nothing (U89): it refuses what the submit would refuse, with the same
// error.
func (s *Service) checkFlow(ctx context.Context, c Caller, r *wire.SubmitFlowRequest) (wire.FlowChecked, error) {
	if r.Empty {
		return wire.FlowChecked{}, base.Invalid("dry_run", "there is nothing to check in an empty flow")
	}
	home, err := c.home()
	if err != nil {
		return wire.FlowChecked{}, err
	}
	flow := r.Body.FlowSubmission
	submission, derived, err := s.flowGiven(ctx, c, &flow, home)
	if err != nil {
		return wire.FlowChecked{}, err
	}
	who := c.submitter(derived)
	who.Repeated = nil // a check is never a repeat
	order, err := s.engine.CheckFlow(ctx, who, submission)
	if err != nil {
		return wire.FlowChecked{}, sameRequest(AsGiven(err, graphOf(&flow)), derived)
	}
	return wire.FlowChecked{OK: true, Order: append([]string{}, order...)}, nil
}

// changing returns the caller as one that changes a flow, with the key that identifies a repeat. A further try of our own is not
// a repeat.
func (c *Caller) changing(who engine.Caller) engine.Caller {
	who.RequestKey = cmp.Or(c.RequestKey, c.Key)
	if !c.first() {
		who.Repeated = nil
	}
	return who
}

// extendFlow adds members and edges (U90).
func (s *Service) extendFlow(ctx context.Context, c Caller, r *wire.ExtendFlowRequest) (api.FlowRun, error) {
	more, err := coreExtension(r)
	if err != nil {
		return api.FlowRun{}, err
	}
	more.Trace = s.cfg.trace(ctx)
	answer, err := s.engine.ExtendFlow(ctx, c.changing(c.client()), more)
	if err != nil {
		return api.FlowRun{}, AsGiven(err, wire.SubFlow{Defaults: r.Body.Defaults, Nodes: r.Body.Nodes})
	}
	return flowRunOf(answer), nil
}

// sealFlow declares a flow complete (U90).
func (s *Service) sealFlow(ctx context.Context, c Caller, r *wire.SealFlowRequest) (api.FlowRun, error) {
	return s.extendFlow(ctx, c, &wire.ExtendFlowRequest{ByFlow: r.ByFlow, IfMatch: r.IfMatch, Body: wire.FlowExtension{Seal: true}})
}

// cancelFlow ends a flow and, according to the policy, its members (U93).
func (s *Service) cancelFlow(ctx context.Context, c Caller, r *wire.CancelFlowRequest) (api.FlowCancelProgress, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.FlowCancelProgress{}, err
	}
	wait, _, err := r.Wait()
	if err != nil {
		return api.FlowCancelProgress{}, base.Invalid("wait_ms", "a wait is not negative")
	}
	request := engine.CancelFlowRequest{Flow: id, Policy: core.CancelPolicy(r.Body.Policy), Reason: r.Body.Reason, Wait: wait}
	answer, err := s.engine.CancelFlow(ctx, c.changing(c.operator()), request)
	return cancelProgressOf(answer), err
}

// deleteFlow removes a finished flow (U55).
func (s *Service) deleteFlow(ctx context.Context, c Caller, r *wire.DeleteFlowRequest) (wire.None, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.None{}, err
	}
	request := engine.DeleteFlowRequest{Flow: id, Reason: r.Body.Reason, Expected: (*int64)(r.IfMatch)}
	return wire.None{}, s.engine.DeleteFlow(ctx, c.changing(c.operator()), request)
}

// setJoin sets how many of its inbound edges a member needs (U92).
func (s *Service) setJoin(ctx context.Context, c Caller, r *wire.SetJoinRequest) (api.JoinView, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.JoinView{}, err
	}
	spec, err := coreJoin(&wire.JoinSpec{Policy: r.Body.Policy, K: r.Body.K, OnSatisfied: r.Body.OnSatisfied})
	if err != nil {
		return api.JoinView{}, err
	}
	view, changed, err := s.engine.SetJoin(ctx, c.changing(c.client()), id, r.Name, spec)
	if err != nil {
		return api.JoinView{}, err
	}
	shown := JoinShown(view)
	shown.Changed = api.Changed(changed)
	return *shown, nil
}

// patchFlowTags changes tags by merge patch (U94).
func (s *Service) patchFlowTags(ctx context.Context, c Caller, r *wire.PatchFlowTagsRequest) (wire.Tags, error) {
	return s.tagFlow(ctx, c, r.ByFlow, r.Body, false)
}

// putFlowTags replaces all tags (U94).
func (s *Service) putFlowTags(ctx context.Context, c Caller, r *wire.PutFlowTagsRequest) (wire.Tags, error) {
	whole := make(map[string]*string, len(r.Body))
	for key, value := range r.Body {
		whole[key] = &value
	}
	return s.tagFlow(ctx, c, r.ByFlow, whole, true)
}

func (s *Service) tagFlow(ctx context.Context, c Caller, flow wire.ByFlow, changes map[string]*string, whole bool) (wire.Tags, error) {
	id, err := base.ParseID(flow.ID)
	if err != nil {
		return wire.Tags{}, err
	}
	tags, err := s.engine.SetFlowTags(ctx, c.changing(c.operator()), id, changes, whole)
	if err != nil {
		return wire.Tags{}, err
	}
	all := map[string]string{}
	maps.Copy(all, tags)
	return wire.Tags{Tags: all}, nil
}
