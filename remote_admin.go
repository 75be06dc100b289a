package flowfabric

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteAdmin struct{ client *remote }

func (remoteAdmin) sealed() {}

func (r *remote) Admin() Admin { return remoteAdmin{r} }

func (r remoteAdmin) APIKeys() APIKeys       { return remoteKeys(r) }
func (r remoteAdmin) Namespaces() Namespaces { return remoteNamespaces(r) }

func (r remoteAdmin) Audit(ctx context.Context, o ...AuditFilter) iter.Seq2[AuditRow, error] {
	filter, err := single(o)
	return walk(err, filter.Cursor, func(cursor string) (Page[AuditRow], error) {
		filter.Cursor = cursor
		return r.AuditPage(ctx, filter)
	})
}

func (r remoteAdmin) AuditPage(ctx context.Context, f AuditFilter) (Page[AuditRow], error) {
	request := &wire.AuditRequest{
		PageFields: pageFields(f.Limit, f.Cursor), Principal: f.Principal, Action: f.Action, Entity: f.Entity, EntityID: f.EntityID,
		From: wireTime(f.From), To: wireTime(f.To),
	}
	answer, err := call(ctx, r.client, wire.ListAudit, request, sending{namespace: f.Namespace})
	if err != nil {
		return Page[AuditRow]{}, err
	}
	return Page[AuditRow]{Items: each(answer.Items, auditRowFrom), NextCursor: answer.NextCursor, AsOf: answer.AsOf}, nil
}

func (r remoteAdmin) VerifyAudit(ctx context.Context, namespace string) (AuditCheck, error) {
	request, how := &wire.VerifyAuditRequest{}, sending{namespace: namespace, wait: longRead}
	if namespace == core.Everywhere {
		request.Shared, how.namespace = true, ""
	}
	answer, err := call(ctx, r.client, wire.VerifyAudit, request, how)
	if err != nil {
		return AuditCheck{}, err
	}
	return AuditCheck(*answer), nil
}

func (r remoteAdmin) RecordRefusal(context.Context, Refusal) error {
	return serversOwn("writing into the audit log")
}

func (r remoteAdmin) OnlyNamespace(context.Context, string) (bool, error) {
	return false, serversOwn("looking at all namespaces")
}

// serversOwn is what only the process that has the store can do.
func serversOwn(what string) error {
	return newError(core.CodeNotImplemented, "%s is not part of the HTTP API", what).At("", "use a client of Open on the store")
}

func (r remoteAdmin) Info(ctx context.Context) (Info, error) {
	answer, err := call(ctx, r.client, wire.GetInfo, &wire.None{}, sending{})
	if err != nil {
		return Info{}, err
	}
	return infoFrom(answer), nil
}

func (r remoteAdmin) Whoami(ctx context.Context) (Identity, error) {
	answer, err := call(ctx, r.client, wire.Whoami, &wire.None{}, sending{})
	if err != nil {
		return Identity{}, err
	}
	return Identity(*answer), nil
}

func (r remoteAdmin) Integrity(ctx context.Context) (IntegrityReport, error) {
	answer, err := call(ctx, r.client, wire.CheckIntegrity, &wire.None{}, sending{wait: longRead})
	if err != nil {
		return IntegrityReport{}, err
	}
	return integrityFrom(answer), nil
}

func (r remoteAdmin) Doctor(ctx context.Context) (Checkup, error) {
	answer, err := call(ctx, r.client, wire.RunDoctor, &wire.None{}, sending{wait: longRead})
	if err != nil {
		return Checkup{}, err
	}
	return checkupFrom(answer), nil
}

func (r remoteAdmin) AcknowledgeRollbacks(ctx context.Context, o ...AdminAction) ([]Rollback, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.AcknowledgeRollbacksRequest{}
	request.Body.AdminFields = options.wire()
	answer, err := call(ctx, r.client, wire.AcknowledgeRollbacks, request, sending{key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	return each(answer.Rollbacks, rollbackFrom), nil
}

func (r remoteAdmin) Settings(ctx context.Context) ([]Setting, error) {
	answer, err := call(ctx, r.client, wire.GetSettings, &wire.None{}, sending{})
	if err != nil {
		return nil, err
	}
	return each(answer.Settings, settingFrom), nil
}

// Backup copies what comes as it comes. It is not repeated: the writer has what came.
func (r remoteAdmin) Backup(ctx context.Context, w io.Writer, o ...BackupOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	message, err := wire.Encode(wire.MakeBackup, &wire.None{})
	if err != nil {
		return api.FaultsError(err)
	}
	ctx, done, err := r.client.begin(ctx, true, false)
	if err != nil {
		return err
	}
	defer done()
	r.client.putHead(wire.MakeBackup.Operation, message.Header, sending{})
	request, err := r.client.request(ctx, message)
	if err != nil {
		return err
	}
	response, err := r.client.http.Do(request)
	if err != nil {
		return unanswered(err, false) // whether it was asked for or not, nothing has changed
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return problemFrom(response)
	}
	if _, err := io.Copy(&pageCounter{w: w, told: options.Progress}, response.Body); err != nil {
		return newError(core.CodeStoreUnavailable, "the copy did not come whole: %w", err)
	}
	return nil
}

type remoteKeys struct{ client *remote }

func (remoteKeys) sealed() {}

func (r remoteKeys) List(ctx context.Context) iter.Seq2[*APIKey, error] {
	return walk(nil, "", func(cursor string) (Page[*APIKey], error) { return r.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (r remoteKeys) Page(ctx context.Context, o ...PageOptions) (Page[*APIKey], error) {
	options, err := single(o)
	if err != nil {
		return Page[*APIKey]{}, err
	}
	request := &wire.ListAPIKeysRequest{PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListAPIKeys, request, func(w wire.APIKey) *APIKey {
		key := apiKeyFrom(w)
		return &key
	})
}

func (r remoteKeys) Get(ctx context.Context, id string) (*APIKey, error) {
	return oneKey(ctx, r.client, wire.GetAPIKey, &wire.ByKey{ID: id}, sending{})
}

func (r remoteKeys) Create(ctx context.Context, s APIKeySettings, o ...CreateKeyOptions) (*NewAPIKey, error) {
	options, err := single(o)
	switch {
	case err != nil:
		return nil, err
	case options.Secret != "":
		return nil, serversOwn("installing a key that exists")
	}
	request := &wire.CreateAPIKeyRequest{}
	request.Body.APIKeySettings, request.Body.AdminFields = s.wire(), options.wire()
	return newKey(ctx, r.client, wire.CreateAPIKey, request, options.RequestKey)
}

func (r remoteKeys) Change(ctx context.Context, id string, c APIKeyChange, o ...AdminAction) (*APIKey, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PatchAPIKeyRequest{ByKey: wire.ByKey{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	body := &request.Body
	body.AdminFields = options.wire()
	body.Name, body.Roles, body.Namespaces, body.Lanes = c.Name, c.Roles, c.Namespaces, c.Lanes
	body.MaxRequestsPerSecond, body.MaxInFlight, body.Force = c.MaxRequestsPerSecond, c.MaxInFlight, c.Force
	if c.ExpiresAt != nil {
		at := wireTime(*c.ExpiresAt)
		body.ExpiresAt = &at
	}
	return oneKey(ctx, r.client, wire.PatchAPIKey, request, sending{key: options.RequestKey})
}

func (r remoteKeys) Revoke(ctx context.Context, id string, o ...RevokeAPIKeyOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	request := &wire.RevokeAPIKeyRequest{
		ByKey: wire.ByKey{ID: id}, Force: options.Force, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire(),
	}
	_, err = call(ctx, r.client, wire.RevokeAPIKey, request, sending{key: options.RequestKey})
	return err
}

func (r remoteKeys) Rotate(ctx context.Context, id string, o ...RotateOptions) (*NewAPIKey, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.RotateAPIKeyRequest{ByKey: wire.ByKey{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.AdminFields = options.wire()
	if options.Overlap != nil {
		overlap := millis(*options.Overlap)
		request.Body.OverlapMS = &overlap
	}
	return newKey(ctx, r.client, wire.RotateAPIKey, request, options.RequestKey)
}

func (r remoteKeys) Authenticate(context.Context, string) (*APIKey, error) {
	return nil, serversOwn("finding the key of a secret")
}

// oneKey makes a call that answers a key.
func oneKey[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.APIKey], request *Req, how sending) (*APIKey, error) {
	answer, err := call(ctx, r, c, request, how)
	if err != nil {
		return nil, err
	}
	key := apiKeyFrom(*answer)
	return &key, nil
}

// newKey makes a call that answers a key with its secret.
func newKey[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.NewAPIKey], request *Req, key string) (*NewAPIKey, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	return &NewAPIKey{APIKey: apiKeyFrom(answer.APIKey), Secret: answer.Secret}, nil
}

type remoteNamespaces struct{ client *remote }

func (remoteNamespaces) sealed() {}

func (r remoteNamespaces) List(ctx context.Context) iter.Seq2[*Namespace, error] {
	return walk(nil, "", func(cursor string) (Page[*Namespace], error) { return r.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (r remoteNamespaces) Page(ctx context.Context, o ...PageOptions) (Page[*Namespace], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Namespace]{}, err
	}
	request := &wire.ListNamespacesRequest{PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListNamespaces, request, namespaceFrom)
}

func (r remoteNamespaces) Get(ctx context.Context, name string) (*Namespace, error) {
	return oneNamespace(ctx, r.client, wire.GetNamespace, &wire.ByNamespace{Name: name}, "")
}

func (r remoteNamespaces) Put(ctx context.Context, name string, s NamespaceSettings, o ...AdminAction) (*Namespace, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutNamespaceRequest{ByNamespace: wire.ByNamespace{Name: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.NamespaceSettings, request.Body.AdminFields = s.wire(), options.wire()
	return oneNamespace(ctx, r.client, wire.PutNamespace, request, options.RequestKey)
}

func (r remoteNamespaces) Delete(ctx context.Context, name string, o ...AdminAction) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	request := &wire.DeleteNamespaceRequest{ByNamespace: wire.ByNamespace{Name: name}, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire()}
	_, err = call(ctx, r.client, wire.DeleteNamespace, request, sending{key: options.RequestKey})
	return err
}

// oneNamespace makes a call that answers a namespace.
func oneNamespace[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.Namespace], request *Req, key string) (*Namespace, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	return namespaceFrom(*answer), nil
}
