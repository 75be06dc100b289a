package server

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// newSchemas returns a registry that includes the types of package wire that encode their own JSON.
func newSchemas() huma.Registry {
	registry := huma.NewMapRegistry(schemaRefs, schemaName)
	for from, to := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[wire.Time]():                       reflect.TypeFor[time.Time](),
		reflect.TypeFor[api.Payload]():                     reflect.TypeFor[payloadSchema](),
		reflect.TypeFor[api.Policy]():                      reflect.TypeFor[policySchema](),
		reflect.TypeFor[api.DefaultPolicy]():               reflect.TypeFor[policySchema](),
		reflect.TypeFor[api.SubmitResult]():                reflect.TypeFor[submitItem](),
		reflect.TypeFor[error]():                           reflect.TypeFor[api.Problem](),
		reflect.TypeFor[api.Lease]():                       reflect.TypeFor[wire.Lease](),
		reflect.TypeFor[wire.LeaseRef]():                   reflect.TypeFor[leaseSchema](),
		reflect.TypeFor[wire.HeldLease]():                  reflect.TypeFor[heldSchema](),
		reflect.TypeFor[wire.Item[api.SubmitResult]]():     reflect.TypeFor[itemSchema[submitItem]](),
		reflect.TypeFor[wire.Item[api.WorkAnswerFields]](): reflect.TypeFor[itemSchema[api.WorkAnswerFields]](),
		reflect.TypeFor[wire.Item[api.Renewal]]():          reflect.TypeFor[itemSchema[api.Renewal]](),
		reflect.TypeFor[api.Renewals]():                    reflect.TypeFor[wire.Items[api.Renewal]](),
	} {
		registry.RegisterTypeAlias(from, to)
	}
	return registry
}

// schemaNames are the names of schemas that are not those of their Go types.
var schemaNames = map[string]string{
	"BudgetStatus": "Budget", "PageBudgetStatus": "PageBudget", "JoinView": "Join", "Membership": "Member", "StepRecord": "Step", "PageStepRecord": "PageStep",
	"Condition": "ResumeCondition", "SignalRecord": "Signal", "PageSignalRecord": "PageSignal", "SuspensionRecord": "Suspension", "PageSuspensionRecord": "PageSuspension",
	"FlowView": "Flow", "PageFlowView": "PageFlow", "FlowRun": "FlowAnswer", "FlowGraph": "Graph", "EdgeView": "Edge", "PageEdgeView": "PageEdge",
	"FlowCancelProgress": "FlowCancelled", "FlowCancellation": "FlowCancel",
	"ApprovalLink": "Link", "PageApprovalLink": "PageLink", "CloseResult": "ClosedWaitpoint",
	"Claimed": "Task", "Resume": "Resumed", "RevealedGrant": "Grant", "RevealedRevocation": "Revocation", "ItemsSubmitResult": "ItemsSubmitItem",
	"ItemsWorkAnswerFields": "ItemsWorkAnswer", "WorkAnswerFields": "WorkAnswer",
}

// schemaName names the schema of a type.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	return cmp.Or(schemaNames[name], name)
}

// payloadMark marks the place of a payload until spreadPayloads has put its members there.
const payloadMark = "x-payload"

// payloadSchema is a payload (U8).
type payloadSchema struct{}

// Schema is a mark.
func (payloadSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Extensions: map[string]any{payloadMark: true}}
}

// payloadTexts describe the members of payloads that are worded otherwise than the rest.
var payloadTexts = map[string]string{
	"continuation": "Passed to the worker that continues, as any JSON value.", "continuation_omitted": "The continuation is not shown here.",
	"payload_omitted": "The payload is not shown here.",
}

// spreadPayloads puts the members of payloads in their places: those of requests, or with size and omitted those of answers.
func spreadPayloads(s *huma.Schema, asked bool) {
	for name, property := range s.Properties {
		if property.Extensions[payloadMark] == nil {
			continue
		}
		what := strings.TrimSuffix(property.Description, ".")
		longest := 128
		s.Properties[name] = &huma.Schema{Description: what + " as any JSON value."}
		s.Properties[name+"_text"] = &huma.Schema{Type: huma.TypeString, Description: what + " as text."}
		s.Properties[name+"_bytes"] = &huma.Schema{Type: huma.TypeString, Description: what + " as standard base64.", ContentEncoding: "base64"}
		s.Properties[name+"_content_type"] = &huma.Schema{Type: huma.TypeString, Description: "Content type of the " + name + ".", MaxLength: &longest}
		if !asked {
			s.Properties[name+"_size"] = &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: "Size of the " + name + " in bytes."}
			s.Properties[name+"_omitted"] = &huma.Schema{Type: huma.TypeBoolean, Description: "The " + name + " is too large to be shown here."}
		}
		for _, member := range []string{name, name + "_omitted"} {
			if text, ok := payloadTexts[member]; ok && s.Properties[member] != nil {
				s.Properties[member].Description = text
			}
		}
	}
}

// policySchema is a policy, whose fields are checked by rules of their own.
type policySchema struct{}

// Schema is any object.
func (policySchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// submitItem is the answer about one submission of a batch (U33).
type submitItem struct {
	Outcome     string `json:"outcome" enum:"created,duplicate" doc:"Whether this call made it."`
	ExecutionID string `json:"execution_id" doc:"Id of the execution."`
	PublicState string `json:"public_state" doc:"Status in the words of users."`
	Priority    int    `json:"priority" doc:"Priority as clamped."`
}

// leaseSchema is a lease in a request (U27).
type leaseSchema struct{}

// Schema is the text, or an object with the parts of the fence.
func (leaseSchema) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString, Pattern: "^" + fenceForm.pattern + "$"}, leaseObject(r)}}
}

// heldSchema is a lease in a heartbeat (U61).
type heldSchema struct{}

// Schema is an object that names its execution.
func (heldSchema) Schema(r huma.Registry) *huma.Schema {
	return leaseObject(r, "execution_id")
}

// leaseObject is the lease of a task, or only the parts of its fence, and some fields that must be there.
func leaseObject(r huma.Registry, required ...string) *huma.Schema {
	object := *r.Schema(reflect.TypeFor[wire.Lease](), false, "")
	object.Required, object.Properties = required, map[string]*huma.Schema{} // those of answers stay as they are
	for name, property := range r.Schema(reflect.TypeFor[wire.Lease](), false, "").Properties {
		of := *property
		object.Properties[name] = &of
	}
	limitBody("Lease", &object)
	return &object
}

// itemSchema returns the schema of the answer about one item, in which the fields of the value are next to index and ok (U22).
type itemSchema[T any] struct{}

// itemHead are the fields that every such answer has.
type itemHead struct {
	Index int           `json:"index" doc:"Position of the item in the request."`
	OK    bool          `json:"ok" doc:"Whether the item was accepted."`
	Error *wire.Problem `json:"error,omitempty" doc:"Why the item was refused."`
}

// Schema has the fields of both.
func (itemSchema[T]) Schema(r huma.Registry) *huma.Schema {
	item := huma.SchemaFromType(r, reflect.TypeFor[itemHead]())
	for name, field := range r.Schema(reflect.TypeFor[T](), false, "").Properties {
		item.Properties[name] = field
	}
	return item
}

// finishSchemas says of lists that they are never null, and leaves answers open for fields to come (U4): only what a request has must
// be known.
func finishSchemas(registry huma.Registry, bodies []*huma.Schema) {
	asked := map[*huma.Schema]bool{}
	for _, body := range bodies {
		eachSchema(registry, body, asked)
	}
	answered := map[*huma.Schema]bool{}
	for _, schema := range registry.Map() {
		eachSchema(registry, schema, answered)
	}
	for schema := range answered {
		spreadPayloads(schema, asked[schema])
	}
	for name, schema := range registry.Map() {
		if asked[schema] {
			limitBody(name, schema)
		}
	}
	for schema := range answered {
		if schema.Type == huma.TypeArray {
			schema.Nullable = false
		}
		if !asked[schema] && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
}

// eachSchema collects a schema and all that it refers to.
func eachSchema(registry huma.Registry, s *huma.Schema, into map[*huma.Schema]bool) {
	if s == nil || into[s] {
		return
	}
	into[s] = true
	if s.Ref != "" {
		eachSchema(registry, registry.SchemaFromRef(s.Ref), into)
	}
	eachSchema(registry, s.Items, into)
	for _, property := range s.Properties {
		eachSchema(registry, property, into)
	}
	for _, list := range [][]*huma.Schema{s.AnyOf, s.OneOf, s.AllOf} {
		for _, part := range list {
			eachSchema(registry, part, into)
		}
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		eachSchema(registry, values, into)
	}
}
