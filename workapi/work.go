// Package workapi is the raw worker protocol: registering, claiming, and commands under leases. A flowfabric.Worker implements it for
// typed handlers; use it directly only to build another sort of worker.
package workapi

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Work is the worker protocol. Worker implements it; use Work directly only to build another sort of worker.
type Work struct{ via transport.Transport }

// On returns the protocol over a transport. Programs get it from their client.
func On(via transport.Transport) Work { return Work{via} }

// Register registers an instance, or replaces its registration. Codes: invalid_argument, invalid_capabilities, instance_id_taken,
// namespace_forbidden.
func (w Work) Register(ctx context.Context, r api.Registration) (api.RegisterResult, error) {
	request := &wire.RegisterRequest{}
	request.Body.Registration = r
	return calls.Value(transport.Call(ctx, w.via, wire.RegisterWorker, request, transport.Options{}))
}

// Heartbeat reports that an instance is alive and renews its leases, each with its own answer.
func (w Work) Heartbeat(ctx context.Context, instanceID string, leases []api.Lease) (api.Heartbeat, error) {
	request := &wire.HeartbeatRequest{Instance: instanceID}
	request.Body.Leases = make([]wire.HeldLease, len(leases))
	for i, lease := range leases {
		if _, err := calls.ParseID(lease.ExecutionID); err != nil {
			return api.Heartbeat{}, api.Within(fmt.Sprintf("leases[%d].execution_id", i), err)
		}
		request.Body.Leases[i] = wire.HeldLease{ExecutionID: string(lease.ExecutionID), LeaseRef: wire.FenceOf(&lease)}
	}
	beat, err := transport.Call(ctx, w.via, wire.HeartbeatWorker, request, transport.Options{})
	if err != nil {
		return api.Heartbeat{}, err
	}
	if len(beat.Leases) != len(leases) {
		return api.Heartbeat{}, transport.Garbled(fmt.Errorf("%d renewals for %d leases", len(beat.Leases), len(leases)))
	}
	for i := range beat.Leases { // over HTTP the heartbeat has one value for all of them
		beat.Leases[i].Drain = beat.Leases[i].Drain || beat.Drain
	}
	return *beat, nil
}

// Claim claims up to Max executions and waits up to Wait while there are none. Fewer than Max, or none, is not an error.
//
// Codes: invalid_argument, invalid_capabilities, namespace_forbidden, instance_id_taken, worker_not_registered if the instance
// was marked dead.
func (w Work) Claim(ctx context.Context, r api.ClaimRequest) (api.ClaimAnswer, error) {
	request := &wire.ClaimRequest{}
	request.Body.ClaimRequest, request.Body.Brief = r, r.Brief
	return calls.Value(transport.Call(ctx, w.via, wire.ClaimWork, request, transport.Options{Key: r.RequestKey, Wait: r.Wait, Again: r.Repeat}))
}

// ClaimResumed claims one resumed execution. Codes: execution_not_found, not_a_resumed_execution, grant_outstanding,
// lane_mismatch, lane_not_claimable, capability_mismatch, instance_id_taken, worker_not_registered.
func (w Work) ClaimResumed(ctx context.Context, id api.ID, r api.TargetedClaim) (*api.Claimed, error) {
	return w.claimOne(ctx, wire.ClaimResumed, id, r)
}

// Reclaim claims one execution whose worker is gone. Codes: execution_not_found, execution_not_reclaimable,
// execution_not_eligible, lease_conflict, grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch,
// execution_not_active, instance_id_taken, worker_not_registered.
func (w Work) Reclaim(ctx context.Context, id api.ID, r api.TargetedClaim) (*api.Claimed, error) {
	return w.claimOne(ctx, wire.ReclaimExecution, id, r)
}

func (w Work) claimOne(ctx context.Context, call wire.Call[wire.TargetedClaimRequest, api.Claimed], id api.ID, r api.TargetedClaim) (*api.Claimed, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.TargetedClaimRequest{ByID: path}
	request.Body.TargetedClaim = r
	return transport.Call(ctx, w.via, call, request, transport.Options{Key: r.RequestKey})
}

// Grant is the first of two steps of a claim: it selects and admits up to Max executions as Claim does and reserves them for this
// worker and instance. Each grant has a key, with which the worker claims it. No grants is not an error.
//
// Codes: those of Claim, signing_key_missing; with ExecutionID also execution_not_found, execution_not_active,
// execution_not_eligible, lease_conflict, grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch,
// admission_refused.
func (w Work) Grant(ctx context.Context, r api.GrantRequest) ([]api.Grant, error) {
	request := &wire.GrantRequest{}
	request.Body.GrantRequest = r
	if r.ExecutionID != "" {
		if _, err := calls.ParseID(r.ExecutionID); err != nil {
			return nil, err
		}
		request.Body.Wait = 0
	}
	answer, err := transport.Call(ctx, w.via, wire.GrantWork, request, transport.Options{Key: r.RequestKey, Wait: r.Wait, Again: r.Repeat})
	if err != nil {
		return nil, err
	}
	return calls.Each(answer.Grants, api.RevealedGrant.Concealed), nil
}

// ClaimGrant claims a granted execution, which uses up the grant: a repeat returns the same lease to the same worker, and
// grant_unknown to any other. Codes: those of VerifyGrant, invalid_argument, instance_id_taken, worker_not_registered.
func (w Work) ClaimGrant(ctx context.Context, key api.GrantKey, r api.GrantClaim) (*api.Claimed, error) {
	request := &wire.ClaimGrantRequest{}
	request.Body.GrantKey, request.Body.GrantClaim = key.Reveal(), r
	return transport.Call(ctx, w.via, wire.ClaimGrant, request, transport.Options{})
}

// VerifyGrant reports whether the key belongs to an outstanding grant. Codes: grant_malformed, grant_expired, grant_unknown_kid,
// grant_unknown, grant_signature_mismatch.
func (w Work) VerifyGrant(ctx context.Context, key api.GrantKey) error {
	return withGrant(ctx, w.via, wire.VerifyGrant, key)
}

// ReturnGrant ends a grant early: what it reserved is free at once, and others may claim the execution. Codes: those of
// VerifyGrant.
func (w Work) ReturnGrant(ctx context.Context, key api.GrantKey) error {
	return withGrant(ctx, w.via, wire.ReturnGrant, key)
}

func withGrant[Ans any](ctx context.Context, via transport.Transport, call wire.Call[wire.GrantKeyRequest, Ans], key api.GrantKey) error {
	request := &wire.GrantKeyRequest{}
	request.Body.GrantKey = key.Reveal()
	_, err := transport.Call(ctx, via, call, request, transport.Options{})
	return err
}

// Do sends commands under leases. Each is accepted or refused on its own, see its Err; those of one execution are done in the
// given order. The error of the call concerns all of them: batch_too_large above 1000.
//
// Codes of an item: fence_required, partial_fence, stale_lease, lease_expired, lease_revoked, execution_not_active,
// execution_not_found, invalid_argument, payload_too_large, step_limit_exceeded; for suspend and waitpoint also those of
// Task.Suspend and Task.NewWaitpoint; for spawn and wait_children those of Task.Spawn and Task.WaitForChildren; with Usage also
// invalid_usage, reserved_dimension, amount_out_of_range, for usage idempotency_conflict; for frames invalid_frame, reserved_name,
// frame_too_large, batch_too_large, stale_append, invalid_patch, patch_too_deep, summary_too_large, stream_full.
func (w Work) Do(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error) {
	if n := len(items); n > wire.MaxWorkItems {
		return nil, calls.Refuse(base.CodeBatchTooLarge, "%d items, at most %d", n, wire.MaxWorkItems).At("items", "send them in several calls")
	}
	return calls.Value(transport.Call(ctx, w.via, wire.DoWork, &wire.WorkBatch{Items: items}, transport.Options{}))
}
