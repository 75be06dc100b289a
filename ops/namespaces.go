package ops

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Namespaces are the tenants of a store. A namespace exists implicitly by being used; these calls manage those with settings
// other than the default.
type Namespaces struct{ via transport.Transport }

// List iterates over the namespaces by name.
func (n Namespaces) List(ctx context.Context) iter.Seq2[*api.Namespace, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[*api.Namespace], error) {
		return n.Page(ctx, api.PageOptions{Cursor: cursor})
	})
}

// Page returns one page of the namespaces. Codes: invalid_cursor.
func (n Namespaces) Page(ctx context.Context, o ...api.PageOptions) (api.Page[*api.Namespace], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.Namespace]{}, err
	}
	request := &wire.ListNamespacesRequest{PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, n.via, wire.ListNamespaces, request, transport.Options{}))
}

// Get returns a namespace. Codes: namespace_not_found.
func (n Namespaces) Get(ctx context.Context, name string) (*api.Namespace, error) {
	return transport.Call(ctx, n.via, wire.GetNamespace, &wire.ByNamespace{Name: name}, transport.Options{})
}

// Put sets all settings of a namespace and sets it up if it is not. Codes: invalid_argument, precondition_failed,
// namespace_not_found if a Revision is given and the namespace is not set up.
func (n Namespaces) Put(ctx context.Context, name string, s api.NamespaceSettings, o ...AdminAction) (*api.Namespace, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutNamespaceRequest{ByNamespace: wire.ByNamespace{Name: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.NamespaceSettings, request.Body.AdminFields = s, options.wire()
	return transport.Call(ctx, n.via, wire.PutNamespace, request, transport.Options{Key: options.RequestKey})
}

// Delete removes a namespace without executions. Its audit log is kept.
//
// Codes: namespace_not_found, namespace_not_empty, precondition_failed.
func (n Namespaces) Delete(ctx context.Context, name string, o ...AdminAction) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	request := &wire.DeleteNamespaceRequest{ByNamespace: wire.ByNamespace{Name: name}, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire()}
	_, err = transport.Call(ctx, n.via, wire.DeleteNamespace, request, transport.Options{Key: options.RequestKey})
	return err
}
