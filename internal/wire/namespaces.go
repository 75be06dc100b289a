package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// namespaceCalls are the namespaces of section 2.6.
var namespaceCalls = []*Operation{row(ListNamespaces), row(GetNamespace), row(PutNamespace), row(DeleteNamespace)}

// everywhere limits admin to keys for all namespaces.
var everywhere = map[Role]Condition{Admin: AllNamespaces}

// The calls on namespaces.
var (
	ListNamespaces = Call[ListNamespacesRequest, api.Page[*api.Namespace]]{&Operation{
		ID: "list_namespaces", Rule: "U101", Method: http.MethodGet, Path: "/v1/namespaces", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.List", Command: "namespaces list", Summary: "List namespaces", Status: []int{http.StatusOK},
	}}
	GetNamespace = Call[ByNamespace, api.Namespace]{&Operation{
		ID: "get_namespace", Rule: "U101", Method: http.MethodGet, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Get", Command: "namespaces get", Summary: "Show a namespace", Status: []int{http.StatusOK},
	}}
	PutNamespace = Call[PutNamespaceRequest, api.Namespace]{&Operation{
		ID: "put_namespace", Rule: "U101", Method: http.MethodPut, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Put", Command: "namespaces set", Summary: "Set all settings of a namespace", Status: []int{http.StatusOK},
	}}
	DeleteNamespace = Call[DeleteNamespaceRequest, None]{&Operation{
		ID: "delete_namespace", Rule: "U101", Method: http.MethodDelete, Path: "/v1/namespaces/{name}", Roles: Admin, Only: everywhere,
		Go: "Admin.Namespaces.Delete", Command: "namespaces delete", Summary: "Delete an empty namespace", Status: []int{http.StatusNoContent},
	}}
)

// ListNamespacesRequest lists namespaces.
type ListNamespacesRequest struct{ PageFields }

// ByNamespace identifies a namespace in the path.
type ByNamespace struct {
	Name string `path:"name" argument:"namespace" doc:"Name of the namespace."`
}

// PutNamespaceRequest sets all settings of a namespace.
type PutNamespaceRequest struct {
	ByNamespace
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		api.NamespaceSettings
		AdminFields
	}
}

// DeleteNamespaceRequest deletes a namespace.
type DeleteNamespaceRequest struct {
	ByNamespace
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    AdminFields
}
