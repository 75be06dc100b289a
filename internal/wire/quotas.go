package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// quotaCalls are the quotas of section 2.6.
var quotaCalls = []*Operation{row(ListQuotas), row(GetQuota), row(PutQuota), row(DeleteQuota)}

// The calls on quotas.
var (
	ListQuotas = Call[ListQuotasRequest, api.Page[*api.Quota]]{&Operation{
		ID: "list_quotas", Rule: "U99", Method: http.MethodGet, Path: "/v1/quotas", Roles: Read,
		Go: "Quotas.List", Command: "quotas list", Summary: "List quotas and their use", Status: []int{http.StatusOK},
	}}
	GetQuota = Call[ByQuota, api.Quota]{&Operation{
		ID: "get_quota", Rule: "U99", Method: http.MethodGet, Path: "/v1/quotas/{id}", Roles: Read,
		Go: "Quotas.Get", Command: "quotas get", Summary: "Show a quota and its use", Status: []int{http.StatusOK},
	}}
	PutQuota = Call[PutQuotaRequest, api.Quota]{&Operation{
		ID: "put_quota", Rule: "U99", Method: http.MethodPut, Path: "/v1/quotas/{id}", Roles: Operate, Only: shared,
		Go: "Quotas.Put", Command: "quotas set", Summary: "Set all settings of a quota", Status: []int{http.StatusOK},
	}}
	DeleteQuota = Call[DeleteQuotaRequest, None]{&Operation{
		ID: "delete_quota", Rule: "U99", Method: http.MethodDelete, Path: "/v1/quotas/{id}", Roles: Operate, Only: shared,
		Go: "Quotas.Delete", Command: "quotas delete", Summary: "Delete a quota", Status: []int{http.StatusNoContent},
	}}
)

// ListQuotasRequest lists quotas.
type ListQuotasRequest struct{ PageFields }

// ByQuota identifies a quota in the path.
type ByQuota struct {
	ID string `path:"id" argument:"quota_id" doc:"Id of the quota."`
}

// PutQuotaRequest sets all settings of a quota.
type PutQuotaRequest struct {
	ByQuota
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		api.QuotaSettings
		AdminFields
	}
}

// DeleteQuotaRequest deletes a quota.
type DeleteQuotaRequest struct {
	ByQuota
	Force   bool      `query:"force" doc:"Even while executions use it: they continue without it."`
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    AdminFields
}
