package flowfabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedAdmin struct{ client *embedded }

func (embeddedAdmin) sealed() {}

func (e *embedded) Admin() Admin { return embeddedAdmin{e} }

func (e embeddedAdmin) APIKeys() APIKeys       { return embeddedKeys(e) }
func (e embeddedAdmin) Namespaces() Namespaces { return embeddedNamespaces(e) }

func (e embeddedAdmin) Audit(ctx context.Context, o ...AuditFilter) iter.Seq2[AuditRow, error] {
	filter, err := single(o)
	return walk(err, filter.Cursor, func(cursor string) (Page[AuditRow], error) {
		filter.Cursor = cursor
		return e.AuditPage(ctx, filter)
	})
}

func (e embeddedAdmin) AuditPage(ctx context.Context, f AuditFilter) (Page[AuditRow], error) {
	rows, next, err := e.client.engine.AuditPage(ctx, e.client.asAdmin(ctx), engine.AuditRequest{
		Filter: core.AuditFilter{
			Namespace: f.Namespace, Principal: f.Principal, Action: f.Action, Entity: f.Entity, EntityID: f.EntityID,
			From: core.TimeOf(f.From), To: core.TimeOf(f.To),
		},
		Limit: limitOf(f.Limit), Cursor: f.Cursor,
	})
	if err != nil {
		return Page[AuditRow]{}, publicError(err)
	}
	return pageOf(rows, auditRowOf, next), nil
}

func auditRowOf(r core.AuditRow) AuditRow {
	return AuditRow{
		ID: r.ID.String(), At: r.At.Std(), Namespace: r.Namespace, Principal: r.Principal, Action: r.Action, Entity: r.Entity, EntityID: core.BareID(r.EntityID),
		Reason: r.Reason, RequestID: r.RequestID, Address: r.Address, Before: r.Before, After: core.BareFilter(r.After), Outcome: r.Outcome,
		PrevHash: hex.EncodeToString(r.PrevHash), Hash: hex.EncodeToString(r.Hash),
	}
}

func (e embeddedAdmin) VerifyAudit(ctx context.Context, namespace string) (AuditCheck, error) {
	if namespace == "" {
		home, err := e.client.home(ctx)
		if err != nil {
			return AuditCheck{}, err
		}
		namespace = home
	}
	check, err := e.client.engine.VerifyAudit(ctx, e.client.asAdmin(ctx), namespace)
	if err != nil {
		return AuditCheck{}, publicError(err)
	}
	return AuditCheck{
		Namespace: check.Namespace, OK: check.Problem == "", Keyed: check.Keyed != 0, FirstKeyed: check.Keyed, First: check.First, Last: check.Last,
		Rows: check.Rows, Broken: check.Broken, Problem: check.Problem, Removed: check.Removed, Hash: hex.EncodeToString(check.Hash),
	}, nil
}

func (e embeddedAdmin) RecordRefusal(ctx context.Context, r Refusal) error {
	return publicError(e.client.engine.Refused(ctx, e.client.asOperator(ctx), engine.Refusal{
		Namespace: r.Namespace, Action: r.Action, Entity: r.Entity, EntityID: r.EntityID, Code: core.Code(r.Code),
	}))
}

func (e embeddedAdmin) OnlyNamespace(ctx context.Context, name string) (bool, error) {
	others, err := e.client.engine.OtherNamespaces(ctx, []string{name})
	return !others && err == nil, publicError(err)
}

// action converts what an administrator's change carries and gives it a request key, so that it can be repeated.
func (e *embedded) action(ctx context.Context, a AdminAction) engine.AdminAction {
	how := engine.AdminAction{Reason: a.Reason, RequestKey: a.RequestKey, Revision: a.Revision}
	if how.RequestKey == "" {
		how.RequestKey = e.requestKey(ctx)
	}
	return how
}

// keyGrace is how long a secret that was replaced works on unless the call says otherwise.
func (e *embedded) keyGrace() time.Duration {
	if e.cfg.KeyGrace == 0 {
		return duration(core.DefaultOverlap)
	}
	return e.cfg.KeyGrace
}

type embeddedKeys struct{ client *embedded }

func (embeddedKeys) sealed() {}

func (e embeddedKeys) List(ctx context.Context) iter.Seq2[*APIKey, error] {
	return walk(nil, "", func(cursor string) (Page[*APIKey], error) { return e.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (e embeddedKeys) Page(ctx context.Context, o ...PageOptions) (Page[*APIKey], error) {
	options, err := single(o)
	if err != nil {
		return Page[*APIKey]{}, err
	}
	keys, next, err := e.client.engine.APIKeys(ctx, e.client.asAdmin(ctx), options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[*APIKey]{}, publicError(err)
	}
	return pageOf(keys, apiKeyOf, next), nil
}

func (e embeddedKeys) Get(ctx context.Context, id string) (*APIKey, error) {
	k, err := e.client.engine.APIKey(ctx, e.client.asAdmin(ctx), id)
	if err != nil {
		return nil, publicError(err)
	}
	return apiKeyOf(k), nil
}

func (e embeddedKeys) Create(ctx context.Context, s APIKeySettings, o ...CreateKeyOptions) (*NewAPIKey, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	secret := mintSecret()
	if options.Secret != "" {
		if secret, err = core.ParseAPISecret(options.Secret); err != nil {
			return nil, publicError(err)
		}
	}
	how := e.client.action(ctx, options.AdminAction)
	k, err := untilKnown(ctx, e.client.clock, func() (core.APIKey, error) {
		return e.client.engine.CreateAPIKey(ctx, e.client.asAdmin(ctx), secret, s.core(), how)
	})
	if err != nil {
		return nil, err
	}
	return newKeyOf(k, secret, k.ID == secret.KeyID()), nil
}

// mintSecret makes a secret before the first try, so that a repeat finds the key that it made.
func mintSecret() core.APISecret {
	var random [40]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return core.MintAPISecret(random)
}

// newKeyOf shows the secret of a key if it is this one and not that of an earlier call.
func newKeyOf(k core.APIKey, secret core.APISecret, own bool) *NewAPIKey {
	made := &NewAPIKey{APIKey: *apiKeyOf(k)}
	if own {
		made.Secret = secret.Reveal()
	}
	return made
}

func (s APIKeySettings) core() core.APIKeySettings {
	return core.APIKeySettings{
		Name: s.Name, Roles: s.Roles, Namespaces: s.Namespaces, Lanes: s.Lanes, ExpiresAt: core.TimeOf(s.ExpiresAt),
		MaxRequestsPerSecond: s.MaxRequestsPerSecond, MaxInFlight: s.MaxInFlight,
	}
}

func apiKeyOf(k core.APIKey) *APIKey {
	return &APIKey{
		ID: k.ID, Revision: k.Revision, CreatedAt: k.CreatedAt.Std(), CreatedBy: k.CreatedBy, RotatedAt: k.RotatedAt.Std(),
		LastUsedAt: k.LastUsedAt.Std(), RevokedAt: k.RevokedAt.Std(),
		APIKeySettings: APIKeySettings{
			Name: k.Name, Roles: k.Roles, Namespaces: k.Namespaces, Lanes: k.Lanes, ExpiresAt: k.ExpiresAt.Std(),
			MaxRequestsPerSecond: k.MaxRequestsPerSecond, MaxInFlight: k.MaxInFlight,
		},
	}
}

func (e embeddedKeys) Change(ctx context.Context, id string, c APIKeyChange, o ...AdminAction) (*APIKey, error) {
	patch := core.APIKeyPatch{
		Name: c.Name, Roles: c.Roles, Namespaces: c.Namespaces, Lanes: c.Lanes, MaxRequestsPerSecond: c.MaxRequestsPerSecond, MaxInFlight: c.MaxInFlight,
	}
	if c.ExpiresAt != nil {
		at := core.TimeOf(*c.ExpiresAt)
		patch.ExpiresAt = &at
	}
	action, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.onKey(ctx, action, func(how engine.AdminAction) (core.APIKey, error) {
		return e.client.engine.ChangeAPIKey(ctx, e.client.asAdmin(ctx), id, patch, c.Force, how)
	})
}

func (e embeddedKeys) Revoke(ctx context.Context, id string, o ...RevokeAPIKeyOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	_, err = e.onKey(ctx, options.AdminAction, func(how engine.AdminAction) (core.APIKey, error) {
		return e.client.engine.RevokeAPIKey(ctx, e.client.asAdmin(ctx), id, options.Force, how)
	})
	return err
}

func (e embeddedKeys) onKey(ctx context.Context, action AdminAction, do func(engine.AdminAction) (core.APIKey, error)) (*APIKey, error) {
	how := e.client.action(ctx, action)
	k, err := untilKnown(ctx, e.client.clock, func() (core.APIKey, error) { return do(how) })
	if err != nil {
		return nil, err
	}
	return apiKeyOf(k), nil
}

func (e embeddedKeys) Rotate(ctx context.Context, id string, o ...RotateOptions) (*NewAPIKey, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	overlap := millis(e.client.keyGrace())
	if options.Overlap != nil {
		overlap = millis(*options.Overlap)
	}
	var random [32]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	secret := core.MintSecretOf(id, random)
	how := e.client.action(ctx, options.AdminAction)
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.RotatedKey, error) {
		return e.client.engine.RotateAPIKey(ctx, e.client.asAdmin(ctx), secret, overlap, how)
	})
	if err != nil {
		return nil, err
	}
	return newKeyOf(answer.Key, secret, answer.Present), nil
}

func (e embeddedKeys) Authenticate(ctx context.Context, secret string) (*APIKey, error) {
	k, err := e.client.engine.Authenticate(ctx, secret)
	if err != nil {
		return nil, publicError(err)
	}
	return apiKeyOf(k), nil
}

type embeddedNamespaces struct{ client *embedded }

func (embeddedNamespaces) sealed() {}

func (e embeddedNamespaces) List(ctx context.Context) iter.Seq2[*Namespace, error] {
	return walk(nil, "", func(cursor string) (Page[*Namespace], error) { return e.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (e embeddedNamespaces) Page(ctx context.Context, o ...PageOptions) (Page[*Namespace], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Namespace]{}, err
	}
	all, next, err := e.client.engine.Namespaces(ctx, e.client.asAdmin(ctx), options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[*Namespace]{}, publicError(err)
	}
	return pageOf(all, namespaceOf, next), nil
}

func (e embeddedNamespaces) Get(ctx context.Context, name string) (*Namespace, error) {
	n, err := e.client.engine.Namespace(ctx, e.client.asAdmin(ctx), name)
	if err != nil {
		return nil, publicError(err)
	}
	return namespaceOf(n), nil
}

func (e embeddedNamespaces) Put(ctx context.Context, name string, s NamespaceSettings, o ...AdminAction) (*Namespace, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	how := e.client.action(ctx, options)
	n, err := untilKnown(ctx, e.client.clock, func() (core.Namespace, error) {
		return e.client.engine.PutNamespace(ctx, e.client.asAdmin(ctx), name, s.core(), how)
	})
	if err != nil {
		return nil, err
	}
	return namespaceOf(n), nil
}

func (e embeddedNamespaces) Delete(ctx context.Context, name string, o ...AdminAction) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	how := e.client.action(ctx, options)
	_, err = untilKnown(ctx, e.client.clock, func() (None, error) {
		return None{}, e.client.engine.DeleteNamespace(ctx, e.client.asAdmin(ctx), name, how)
	})
	return err
}

func namespaceOf(n core.Namespace) *Namespace {
	s := n.NamespaceSettings
	return &Namespace{Name: n.Name, Revision: n.Revision, CreatedAt: n.CreatedAt.Std(), Settings: NamespaceSettings{
		Description: s.Description, MaxSubmitPerSecond: s.MaxSubmitPerSecond, MaxPayloadBytes: s.MaxPayloadBytes, DefaultQuotas: quotaUsesOf(s.DefaultQuotas),
		MaxLanes: s.MaxLanes, MaxClasses: s.MaxClasses, MaxReady: s.MaxReady, MaxPriority: s.MaxPriority,
		MaxRequestsPerSecond: s.MaxRequestsPerSecond,
	}}
}

func (s NamespaceSettings) core() core.NamespaceSettings {
	return core.NamespaceSettings{
		Description: s.Description, MaxSubmitPerSecond: s.MaxSubmitPerSecond, MaxPayloadBytes: s.MaxPayloadBytes, DefaultQuotas: quotaUses(s.DefaultQuotas),
		MaxLanes: s.MaxLanes, MaxClasses: s.MaxClasses, MaxReady: s.MaxReady, MaxPriority: s.MaxPriority,
		MaxRequestsPerSecond: s.MaxRequestsPerSecond,
	}
}
