package server

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// form is the required format of a text in a request. The document includes it, so that requests generated from the document are
// not refused for their characters alone. The formats are enforced elsewhere; a test compares the two.
type form struct {
	pattern string // of a text that is there; regular expressions of Go, Python and ECMAScript agree on it
	longest int    // characters; 0: as the pattern says
}

// The forms.
var (
	uuidForm    = form{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, 36}
	idForm      = form{`(\{fp:(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\}:)?` + uuidForm.pattern, 45}
	laneForm    = form{`[!-~]+`, 64}
	kindForm    = form{`[!-~]+`, 128}
	nameForm    = form{`[A-Za-z0-9][A-Za-z0-9_.:-]*`, 128}
	memberForm  = form{`[A-Za-z0-9][A-Za-z0-9_.-]*`, 64}
	workerForm  = form{`[^\s\x00-\x1f\x7f-\x9f]+`, 256}
	plainForm   = form{`[^\x00-\x1f\x7f-\x9f]+`, 0}
	contentForm = form{`[ -~]+`, 128}
	kidForm     = form{`[A-Za-z0-9._-]+`, 64}
	secretForm  = form{`[0-9A-Fa-f]{64}`, 64}
	fenceForm   = form{uuidForm.pattern + `\.[1-9][0-9]{0,17}\.` + uuidForm.pattern, 92}
	cursorForm  = form{`[A-Za-z0-9_-]+`, 2048}
	numberForm  = form{`(0|[1-9][0-9]{0,8})`, 9}
	tagForm     = form{`[a-z][a-z0-9_]*(\.[a-z0-9_]+)*`, 64}
	amountForm  = form{`[a-z][a-z0-9_]*`, 64}
	textForm    = form{`[^\x00]+`, 0} // what a filter compares with texts that are stored
	anyForm     = form{}              // whatever the schema says
)

// The words that a text may be.
var (
	statusForm   = words("ready", "delayed", "blocked", "granted", "running", "suspended", "succeeded", "failed", "cancelled", "expired", "skipped")
	publicForm   = words("waiting", "resumable", "delayed", "waiting_children", "rate_limited", "active", "suspended", "completed", "failed", "cancelled", "expired", "skipped")
	nextForm     = words("none", "initial", "retry", "reclaim", "replay", "resume")
	behaviorForm = words("fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate")
	waitForm     = words("waiting_for_signal", "step_boundary", "waiting_for_approval", "waiting_for_callback", "waiting_for_tool_result",
		"paused_by_policy", "waiting_for_operator_review", "manual_pause", "paused_by_budget")
	reasonForm = words("none", "waiting_for_worker", "waiting_for_delay", "waiting_for_retry_backoff", "waiting_for_resume_delay",
		"waiting_for_children", "waiting_for_subflow", "paused_by_operator", "waiting_for_budget", "waiting_for_quota",
		"completed", "permanent", "not_retryable", "no_retry_policy", "retries_exhausted", "retry_window_elapsed",
		"attempt_timeout", "reclaims_exhausted", "suspension_timeout", "subflow_failed", "budget_exceeded", "cancelled",
		"flow_cancelled", "join_satisfied", "join_impossible", "execution_deadline", "dependency_impossible",
		"waiting_for_signal", "waiting_for_approval", "waiting_for_callback", "waiting_for_tool_result", "paused_by_policy")
)

// words is a form and no enum: clients must take words that come later (U4), which many generators do not let them with an enum.
func words(all ...string) form { return form{pattern: "(" + strings.Join(all, "|") + ")"} }

// bodyForms are the forms of the texts in bodies and of the elements of lists, by the name of the field, or by schema and field where a name
// means several things.
var bodyForms = map[string]form{
	"execution_id": idForm, "flow_id": idForm, "ids": idForm,
	"waitpoint_id": uuidForm, "signal_id": uuidForm, "budget_id": uuidForm, "edge_id": uuidForm, "expected_suspension_id": uuidForm,
	"lease_id": uuidForm, "attempt_id": uuidForm, "fence": fenceForm,
	"on_hard": words("block_new", "fail", "suspend_for_approval", "cancel_running"), "on_lease_loss": words("release", "forfeit"),
	"BudgetScope.type": words("namespace", "lane", "flow", "execution", "tag", "none"), "BudgetReset.type": words("none", "interval", "calendar"),
	"LimitChange.remove": words("hard", "soft", "default_reserve"), "timeout_behavior": behaviorForm, "reason_code": waitForm,
	"Expect.status": statusForm, "Filter.status": statusForm, "Filter.public_state": publicForm, "Filter.next": nextForm, "Filter.reason": reasonForm, "Filter.parent_id": idForm,
	"QuotaUse.key": plainForm, "approver": plainForm, "CreateLinkRequestBody.title": {plainForm.pattern, 256}, "ResumeCondition.name": plainForm,
	"SignalFields.category": plainForm, "SendExecutionSignalRequestBody.category": plainForm, "source_type": plainForm, "source_identity": plainForm,
	"correlation_id": plainForm, "suffix": plainForm, "parent": {plainForm.pattern, 128}, "RegisterRequestBody.version": {plainForm.pattern, 128},
	"LinkChoice.id": {plainForm.pattern, 64}, "LinkChoice.label": {plainForm.pattern, 128}, "LinkChoice.signal_name": {plainForm.pattern, 128},
	"lane": laneForm, "lanes": laneForm, "kind": kindForm, "kinds": kindForm,
	"worker_id": workerForm, "worker_instance_id": workerForm,
	"quota": nameForm, "kid": kidForm, "secret_hex": secretForm,
	"idempotency_key": plainForm, "dedup_key": {plainForm.pattern, 256}, "fairness_key": plainForm, "waitpoint_key": plainForm,
	"input_content_type": contentForm, "payload_content_type": contentForm, "result_content_type": contentForm,
	"detail_content_type": contentForm, "continuation_content_type": contentForm,
	"NewMember.name": memberForm, "FlowNode.name": memberForm,
	"FailRequestBody.category": {`[a-z0-9_.-]+`, 64}, "WorkItem.category": {`[a-z0-9_.-]+`, 64},
	"CreateBudgetRequestBody.name": {plainForm.pattern, 128}, "UpdateBudgetRequestBody.name": {plainForm.pattern, 128}, "BudgetDefinition.name": {plainForm.pattern, 128},
	"SignalFields.name": plainForm, "SendExecutionSignalRequestBody.name": plainForm, "ApproveRequestBody.name": plainForm,
	"ClaimRequestBody.namespaces": nameForm, "GrantRequestBody.namespaces": nameForm, "RegisterRequestBody.namespaces": nameForm,
	"CreateAPIKeyRequestBody.namespaces": nameForm, "PatchAPIKeyRequestBody.namespaces": nameForm,
	"Lease.worker_id": anyForm, "Lease.worker_instance_id": anyForm, // they are not evaluated: a lease is sent back as the claim returned it
	"Filter.kind": anyForm, "Filter.lane": anyForm, "Filter.worker_instance_id": anyForm, "Filter.idempotency_key": anyForm,
}

// mapForm is what a map of a request may hold.
type mapForm struct {
	key     form
	most    int // entries; 0: not in the document
	numbers span
	texts   int // characters of a text; 0: not in the document
}

// span is from where to where a whole number may be.
type span struct{ least, most float64 }

// amounts are the whole numbers that every JSON reader keeps.
const amounts = 1<<53 - 1

// mapForms are the forms of maps, by the name of the field, or by schema and field where a name means several things.
var mapForms = map[string]mapForm{
	"tags":             {key: tagForm, most: 64, texts: 256},
	tagChanges:         {key: tagForm, texts: 256}, // those that it deletes count for nothing
	"BulkArgs.tags":    {key: tagForm, texts: 256},
	"Filter.tags":      {key: tagForm, most: 64, texts: 1024},
	"labels":           {key: form{plainForm.pattern, 64}, most: 64, texts: 256},
	"usage":            {key: amountForm, most: 32, numbers: span{0, amounts}},
	"estimate":         {key: amountForm, numbers: span{0, amounts}},
	"dimensions":       {key: amountForm},
	"default_raise":    {key: amountForm, numbers: span{1, amounts}},
	"fairness_weights": {key: form{plainForm.pattern, 128}, most: 10_000, numbers: span{1, 1000}},
}

// tagChanges is the name in mapForms of a body that is a merge patch of tags.
const tagChanges = "tag changes"

// queryForms are the forms of query parameters, by name, or by operation and name where a name means several things. Most are filters,
// which take any text.
var queryForms = map[string]form{
	"cursor": cursorForm, "execution_id": idForm, "flow_id": idForm, "execution": idForm, "suspension": uuidForm,
	"expect_status": statusForm, "reason_code": waitForm,
	wire.ListBudgets.ID + ".scope":     {`(namespace|lane|flow|execution|tag|none)(:[\s\S]*)?`, 0},
	wire.ListFlowMembers.ID + ".state": publicForm,
	wire.SubmitExecution.ID + ".kind":  kindForm,
	wire.SubmitExecution.ID + ".lane":  laneForm,

	wire.SubmitExecution.ID + ".idempotency_key": plainForm,
	wire.CountExecutions.ID + ".by":              words("status", "public_state", "kind", "lane", `tag\.`+tagForm.pattern),
	wire.ListFlows.ID + ".kind":                  textForm,
	wire.ListFlows.ID + ".creator":               textForm,
}

// listForms are the forms of the elements of query parameters that are lists, by the name of the parameter, or by operation and name where
// a name means several things.
var listForms = map[string]form{
	"status": statusForm, "public_state": publicForm, "next": nextForm, "reason": reasonForm, "flow_id": idForm, "parent_id": idForm,
	"include": words(exported...), wire.ListEvents.ID + ".kind": {`[^. \t\n,][^ \t\n,]*`, 0},
}

// pathForms are the forms of path parameters, by their name or by the beginning of the path.
var pathForms = []struct {
	name, under string
	form        form
}{
	{"id", "/v1/executions/", idForm},
	{"id", "/v1/flows/", idForm},
	{"id", "/v1/bulk/", uuidForm},
	{"waitpoint", "/v1/", uuidForm},
	{"link", "/v1/", uuidForm},
	{"edge", "/v1/", uuidForm},
	{"lane", "/v1/", laneForm},
	{"kid", "/v1/", kidForm},
	{"n", "/v1/", numberForm},
	{"n", "/v1/executions/{id}/attempts/", form{`(latest|` + numberForm.pattern + `)`, 9}},
	{"id", "/v1/quotas/", nameForm},
	{"name", "/v1/namespaces/", nameForm},
	{"name", "/v1/executions/{id}/steps/", kindForm},
}

// limitParameter gives the schema of a parameter its form.
func limitParameter(o *wire.Operation, in, name string, s *huma.Schema) {
	switch {
	case in == "path":
		one := 1
		s.MinLength = &one
		for _, p := range pathForms {
			if p.name == name && strings.HasPrefix(o.Path, p.under) && !o.Reserved {
				p.form.limit(s, true)
			}
		}
	case in == "header" && name == "If-Match":
		form{`(W/)?("[0-9]{1,18}"|[0-9]{1,18})`, 0}.limit(s, false)
	case in == "query" && s.Type == huma.TypeArray:
		f := named(listForms, o.ID, name)
		f.limit(s.Items, true)
		if one := 1; f.pattern != "" {
			s.MinItems = &one // in a query an empty list looks like one of an empty text
		}
	case in == "query":
		named(queryForms, o.ID, name).limit(s, false)
	}
}

// mayBeEmpty are texts that must be there, with something in them or not.
var mayBeEmpty = []string{"FailRequestBody.message", "CancelFlowRequestBody.reason", "MarkDeadRequestBody.reason"}

// neverEmpty are texts that may be absent, but not empty: an empty one is not the same as an absent one.
var neverEmpty = []string{"UpdateBudgetRequestBody.name"}

// limitBody gives the fields of an object in a request their forms. name is that of the schema.
func limitBody(name string, s *huma.Schema) {
	for field, property := range s.Properties {
		f, of := named(bodyForms, name, field), named(mapForms, name, field)
		needed := slices.Contains(s.Required, field) && !slices.Contains(mayBeEmpty, name+"."+field)
		switch {
		case property.Type == huma.TypeString:
			f.limit(property, needed || slices.Contains(neverEmpty, name+"."+field))
		case property.Type == huma.TypeArray:
			f.limit(property.Items, true)
		case property.Type == huma.TypeObject:
			of.limit(property, needed)
		}
	}
}

// named is the form of a field: that of its schema and name, or else of its name.
func named[Form any](forms map[string]Form, schema, field string) Form {
	if f, found := forms[schema+"."+field]; found {
		return f
	}
	return forms[field]
}

// limit adds the form to the schema of a map. A required map is not empty.
func (f mapForm) limit(s *huma.Schema, needed bool) {
	values, ok := s.AdditionalProperties.(*huma.Schema)
	if !ok {
		return
	}
	if one := 1; needed {
		s.MinProperties = &one
	}
	if f.key.pattern != "" {
		s.Extensions = map[string]any{"propertyNames": map[string]any{"pattern": "^" + f.key.pattern + "$", "maxLength": f.key.longest}}
	}
	if f.most > 0 {
		s.MaxProperties = &f.most
	}
	switch {
	case values.Type == huma.TypeInteger && f.numbers.most > 0:
		values.Minimum, values.Maximum = &f.numbers.least, &f.numbers.most
	case values.Type == huma.TypeString && f.texts > 0:
		values.MaxLength = &f.texts
	}
}

// limit gives a schema of a text the form. An empty text is an absent one, unless there must be one.
func (f form) limit(s *huma.Schema, needed bool) {
	if s == nil || s.Type != huma.TypeString || len(s.Enum) > 0 {
		return
	}
	if needed && s.Format == "" && s.ContentEncoding == "" {
		one := 1
		s.MinLength = &one
	}
	if f.pattern == "" {
		return
	}
	if s.Pattern = "^" + f.pattern + "$"; !needed {
		s.Pattern = "^(" + f.pattern + ")?$"
	}
	if f.longest > 0 {
		s.MaxLength = &f.longest
	}
}
