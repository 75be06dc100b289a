package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// namespaceCalls are the namespaces of section 2.6.
var namespaceCalls = []*Operation{row(ListNamespaces), row(GetNamespace), row(PutNamespace), row(DeleteNamespace)}

// everywhere bounds admin to keys for all namespaces.
var everywhere = map[Role]Condition{Admin: AllNamespaces}

// The calls on namespaces.
var (
	ListNamespaces = Call[ListNamespacesRequest, Page[Namespace]]{&Operation{
		ID: "list_namespaces", Rule: "U101", Method: http.MethodGet, Path: "/v1/namespaces", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.List", Command: "namespaces list", Summary: "List the namespaces", Status: []int{http.StatusOK},
	}}
	GetNamespace = Call[ByNamespace, Namespace]{&Operation{
		ID: "get_namespace", Rule: "U101", Method: http.MethodGet, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Get", Command: "namespaces get", Summary: "Show a namespace", Status: []int{http.StatusOK},
	}}
	PutNamespace = Call[PutNamespaceRequest, Namespace]{&Operation{
		ID: "put_namespace", Rule: "U101", Method: http.MethodPut, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Put", Command: "namespaces set", Summary: "State all settings of a namespace", Status: []int{http.StatusOK},
	}}
	DeleteNamespace = Call[DeleteNamespaceRequest, None]{&Operation{
		ID: "delete_namespace", Rule: "U101", Method: http.MethodDelete, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Delete", Command: "namespaces delete", Summary: "Remove an empty namespace", Status: []int{http.StatusNoContent},
	}}
)

// ListNamespacesRequest lists namespaces.
type ListNamespacesRequest struct{ PageFields }

// ByNamespace names a namespace in the path.
type ByNamespace struct {
	Name string `path:"name" doc:"Name of the namespace."`
}

// NamespaceSettings are all settings of a namespace; what is absent takes its default.
type NamespaceSettings struct {
	Description          string         `json:"description,omitempty" maxLength:"1024" doc:"What it is for."`
	MaxSubmitPerSecond   int            `json:"max_submit_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Submits a second over all servers; 0: no limit."`
	MaxRequestsPerSecond int            `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second with keys of the namespace, over all servers; 0: 1,000 a second and processor on each server, as long as other namespaces send requests there too."`
	MaxPayloadBytes      int64          `json:"max_payload_bytes,omitempty" minimum:"0" maximum:"67108864" doc:"Largest payload; 0: the server's."`
	MaxLanes             int            `json:"max_lanes,omitempty" minimum:"0" maximum:"1000000" doc:"Lanes that its executions use; 0: 10,000 as long as other namespaces are in use too, else no limit."`
	MaxClasses           int            `json:"max_classes,omitempty" minimum:"0" maximum:"1000000" doc:"Combinations of lane, kind, capabilities, fairness key, quotas and budgets; 0: 100,000 as long as other namespaces are in use too, else no limit."`
	MaxReady             int            `json:"max_ready,omitempty" minimum:"0" maximum:"1000000" doc:"Executions that wait for a worker, those that a submit delayed or a quota or budget blocks included, beyond which submits are refused; 0: no limit."`
	MaxPriority          int            `json:"max_priority,omitempty" minimum:"0" maximum:"9000" doc:"Highest priority: a submit that asks for more gets this; 0: any."`
	DefaultQuotas        []api.QuotaUse `json:"default_quotas,omitempty" doc:"Quotas that are added to the policy of every submit which does not name them."`
}

// Namespace is a namespace with its settings.
type Namespace struct {
	Namespace string `json:"namespace" doc:"Name of the namespace."`
	NamespaceSettings
	Revision  int64 `json:"revision" doc:"Counts the changes of the settings."`
	CreatedAt Time  `json:"created_at,omitzero" doc:"When it was created."`
}

// PutNamespaceRequest states a namespace.
type PutNamespaceRequest struct {
	ByNamespace
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		NamespaceSettings
		AdminFields
	}
}

// DeleteNamespaceRequest removes a namespace.
type DeleteNamespaceRequest struct {
	ByNamespace
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    AdminFields
}
