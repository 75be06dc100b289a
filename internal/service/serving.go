package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Backend is what a server needs: the operations, and what is not in their table because no caller of a server may do it. It is a
// Service, except in tests whose engine crashes and is opened again.
type Backend interface {
	Do(ctx context.Context, c Caller, op *wire.Operation, request, answer any) error
	Authenticate(ctx context.Context, secret string) (*api.APIKey, error)
	HasAdminKey(ctx context.Context) (bool, error)
	OnlyNamespace(ctx context.Context, name string) (bool, error)
	RecordRefusal(ctx context.Context, c Caller, r Refusal) error
	TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error)
	AcquireSlots(ctx context.Context, name string, most, want int) (got int, err error)
	NamespaceBounds(ctx context.Context, namespace string) (NamespaceBounds, error)
	StoreTime() time.Time
	Installation() string
	Collector() metrics.Collector
	NamespaceCollector(namespaces []string) metrics.Collector
}

// Call performs an operation and returns its answer.
func Call[Req, Ans any](ctx context.Context, on Backend, c Caller, call wire.Call[Req, Ans], r *Req) (*Ans, error) {
	answer := new(Ans)
	if err := on.Do(ctx, c, call.Operation, r, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Refusal is a call that a valid credential was refused.
type Refusal struct {
	Namespace string // "": that of the caller
	Action    string // that was requested, as the audit log calls it
	Entity    string
	EntityID  string
	Code      string // role_required, namespace_forbidden
}

// Installation names the installation that the store belongs to, without its id: servers with one name share a store.
func (s *Service) Installation() string {
	id := s.engine.Info().Installation
	sum := sha256.Sum256(append([]byte("flowfabric installation\x00"), id[:]...))
	return hex.EncodeToString(sum[:16])
}

// RecordRefusal records in the audit log that a call of c was refused (U131).
func (s *Service) RecordRefusal(ctx context.Context, c Caller, r Refusal) error {
	return api.AsError(s.engine.Refused(ctx, c.operator(), engine.Refusal{
		Namespace: r.Namespace, Action: r.Action, Entity: r.Entity, EntityID: r.EntityID, Code: base.Code(r.Code),
	}))
}

// Authenticate finds the API key of a secret (U120). The answer is at most five seconds old, and reflects changes made by this
// process at once.
//
// Codes: missing_credentials, invalid_credentials, api_key_expired, api_key_revoked.
func (s *Service) Authenticate(ctx context.Context, secret string) (*api.APIKey, error) {
	k, err := s.engine.Authenticate(ctx, secret)
	if err != nil {
		return nil, api.AsError(err)
	}
	return apiKeyOf(k), nil
}

// HasAdminKey reports whether there is an API key with the role admin that was not revoked. An expired one counts: it shows that
// credentials are to be required (U123).
func (s *Service) HasAdminKey(ctx context.Context) (bool, error) {
	for cursor := ""; ; {
		keys, next, err := s.engine.APIKeys(ctx, engine.Caller{}, cursor, nil)
		if err != nil {
			return false, api.AsError(err)
		}
		for i := range keys {
			if keys[i].RevokedAt == 0 && slices.Contains(keys[i].Roles, "admin") {
				return true, nil
			}
		}
		if cursor = next; cursor == "" {
			return false, nil
		}
	}
}

// OnlyNamespace reports whether no other namespace exists: none that is set up, that an API key covers, that a live worker
// registered for, or that has work.
func (s *Service) OnlyNamespace(ctx context.Context, name string) (bool, error) {
	others, err := s.engine.OtherNamespaces(ctx, []string{name})
	return !others && err == nil, api.AsError(err)
}

// TakeRate takes from an allowance of perSecond shared by all processes on the store; got may be more than want, for later use.
// If got is 0, there is none for the returned time.
func (s *Service) TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error) {
	got, wait, err = s.engine.TakeRate(ctx, name, perSecond, want)
	return got, wait, api.AsError(err)
}

// AcquireSlots sets how many of most places this process wants to hold from now on, and returns how many it holds. It must be
// called again within 15 s.
func (s *Service) AcquireSlots(ctx context.Context, name string, most, want int) (int, error) {
	got, err := s.engine.AcquireSlots(ctx, name, most, want)
	return got, api.AsError(err)
}

// NamespaceBounds are the settings of a namespace that servers enforce; 0: not set.
type NamespaceBounds struct {
	Submits, Requests int // per second over all servers
	Readers           int // calls that wait for something to read, in each server
}

// NamespaceBounds returns what servers enforce for a namespace. The answer is at most a few seconds old, and reflects changes made by this process
// at once.
func (s *Service) NamespaceBounds(ctx context.Context, namespace string) (NamespaceBounds, error) {
	set, err := s.engine.NamespaceBounds(ctx, namespace)
	return NamespaceBounds{Submits: set.MaxSubmitPerSecond, Requests: set.MaxRequestsPerSecond, Readers: set.MaxReaders}, api.AsError(err)
}

// StoreTime returns the store's clock as last read, advanced by the host's clock.
func (s *Service) StoreTime() time.Time { return s.engine.StoreTime().Std() }

// Collector returns the metrics of the engine.
func (s *Service) Collector() metrics.Collector { return s.engine.Collector() }

// NamespaceCollector returns the metrics for callers that are restricted to these namespaces.
func (s *Service) NamespaceCollector(namespaces []string) metrics.Collector {
	return s.engine.NamespaceCollector(namespaces)
}
