package wire

import "net/http"

// quotaCalls are the quotas of section 2.6.
var quotaCalls = []*Operation{row(ListQuotas), row(GetQuota), row(PutQuota), row(DeleteQuota)}

// The calls on quotas.
var (
	ListQuotas = Call[ListQuotasRequest, Page[Quota]]{&Operation{
		ID: "list_quotas", Rule: "U99", Method: http.MethodGet, Path: "/v1/quotas", Roles: Read,
		Go: "Quotas.List", Command: "quotas list", Summary: "List the quotas and their use", Status: []int{http.StatusOK},
	}}
	GetQuota = Call[ByQuota, Quota]{&Operation{
		ID: "get_quota", Rule: "U99", Method: http.MethodGet, Path: "/v1/quotas/{id}", Roles: Read,
		Go: "Quotas.Get", Command: "quotas get", Summary: "Show a quota and its use", Status: []int{http.StatusOK},
	}}
	PutQuota = Call[PutQuotaRequest, Quota]{&Operation{
		ID: "put_quota", Rule: "U99", Method: http.MethodPut, Path: "/v1/quotas/{id}", Roles: Operate, Only: shared,
		Go: "Quotas.Put", Command: "quotas set", Summary: "State all settings of a quota", Status: []int{http.StatusOK},
	}}
	DeleteQuota = Call[DeleteQuotaRequest, None]{&Operation{
		ID: "delete_quota", Rule: "U99", Method: http.MethodDelete, Path: "/v1/quotas/{id}", Roles: Operate, Only: shared,
		Go: "Quotas.Delete", Command: "quotas delete", Summary: "Remove a quota", Status: []int{http.StatusNoContent},
	}}
)

// ListQuotasRequest lists quotas.
type ListQuotasRequest struct{ PageFields }

// ByQuota names a quota in the path.
type ByQuota struct {
	ID string `path:"id" argument:"quota_id" doc:"Id of the quota."`
}

// QuotaSettings are all settings of a quota; what is absent takes its default.
type QuotaSettings struct {
	RateLimit        int   `json:"rate_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Starts in a window; 0: no limit."`
	WindowMS         int64 `json:"window_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long a start counts, 1 second to a day; a minute if absent."`
	ConcurrencyLimit int   `json:"concurrency_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Executions at a time; 0: no limit."`
	PerKey           bool  `json:"per_key,omitempty" doc:"Each key that executions give has limits of its own."`
}

// QuotaUse attaches a quota to an execution.
type QuotaUse struct {
	Quota string `json:"quota" required:"true" maxLength:"128" doc:"Id of the quota."`
	Key   string `json:"key,omitempty" maxLength:"128" doc:"Whose share it is; of a quota that counts by key."`
}

// Quota is a quota with its settings and its use.
type Quota struct {
	QuotaID string `json:"quota_id" doc:"Id of the quota."`
	QuotaSettings
	Revision  int64      `json:"revision" doc:"Counts the changes of the settings."`
	CreatedAt Time       `json:"created_at,omitzero" doc:"When it was created."`
	UpdatedAt Time       `json:"updated_at,omitzero" doc:"When its settings changed."`
	Keys      []QuotaKey `json:"keys,omitempty" doc:"Its use by key, of those in use."`
	MoreKeys  bool       `json:"more_keys,omitempty" doc:"More keys are in use than are shown."`
}

// QuotaKey is the use of one key of a quota; a quota without keys has one without a name.
type QuotaKey struct {
	Key        string   `json:"key,omitempty" doc:"The key; absent where the quota has none."`
	Slots      int      `json:"slots" doc:"Slots held; for callers who do not see all namespaces those of their own executions."`
	Holders    []string `json:"holders,omitempty" doc:"The first 20 executions that hold them."`
	Admissions int      `json:"admissions" doc:"Starts that count in the window now; only for callers who see all namespaces."`
	NextFreeAt Time     `json:"next_free_at,omitzero" doc:"When the rate has room again; only for callers who see all namespaces."`
	Blocked    int      `json:"blocked" doc:"Executions that wait for room."`
	AtLeast    bool     `json:"at_least,omitempty" doc:"A count stopped at 10 000."`
}

// PutQuotaRequest states a quota.
type PutQuotaRequest struct {
	ByQuota
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		QuotaSettings
		AdminFields
	}
}

// DeleteQuotaRequest removes a quota.
type DeleteQuotaRequest struct {
	ByQuota
	Force   bool      `query:"force" doc:"Also while executions are attached to it: they run on without it."`
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    AdminFields
}
