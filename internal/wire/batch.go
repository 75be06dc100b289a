package wire

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// MaxWorkItems is the maximum number of commands in one batch of the worker protocol (U20).
const MaxWorkItems = 1000

// batchCalls are batches of worker commands (U77).
var batchCalls = []*Operation{row(SendWork)}

var (
	// SendWork sends commands of many executions in one request, in JSON form.
	SendWork = Call[SendWorkRequest, Items[api.WorkAnswerFields]]{&Operation{
		ID: "send_work", Rule: "U77", Method: http.MethodPost, Path: "/v1/work/batch", Roles: Work,
		Go: "Work.Do", Command: "work", Summary: "Send commands with leases; those of one execution are applied in the given order",
		Status: []int{http.StatusOK},
	}}
	// DoWork is the same with the values of package api, for transports: they decide whether commands share a request.
	DoWork = variant[WorkBatch, []api.WorkAnswer](SendWork.Operation)
)

// WorkBatch are commands with leases. Each is accepted or refused separately, in its answer.
type WorkBatch struct{ Items []api.WorkItem }

// SendWorkRequest sends a batch.
type SendWorkRequest struct {
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
	Body     struct {
		Items []WorkItem `json:"items" most:"1000" required:"true" doc:"The commands, at most 1000."`
	}
}

// WorkItem is one command of a batch: the fields of its own call, with op, execution_id and lease.
type WorkItem struct {
	Op          string `json:"op" required:"true" enum:"renew,progress,complete,fail,release,delay,suspend,waitpoint,frames,usage,spawn,wait_children,step,cancel" doc:"The command."`
	ExecutionID string `json:"execution_id" required:"true" doc:"Execution of the command."`
	LeaseField

	RenewFields
	ProgressFields                    // message also for fail
	ResultField                       // for complete and step
	Class          string             `json:"class,omitempty" enum:"transient,timeout,infra_crash,permanent,cancelled" doc:"For fail: transient if absent."`
	Category       string             `json:"category,omitempty" maxLength:"64" doc:"For fail: name of the failure."`
	DetailField                       // for fail
	RetryAfterMS   *int64             `json:"retry_after_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"For fail: delay before the retry."`
	DefaultPolicy  *api.DefaultPolicy `json:"default_policy,omitempty" doc:"For fail: the default of the worker."`
	Reason         string             `json:"reason,omitempty" maxLength:"1024" doc:"For release and cancel: reason."`
	DelayFields                       // for delay
	Name           string             `json:"name,omitempty" maxLength:"128" doc:"For step: its name."`

	SuspendFields
	ResumeCondition *api.Condition `json:"resume_condition,omitempty" doc:"For suspend: condition that ends it."`
	WaitpointKey    string         `json:"waitpoint_key,omitempty" maxLength:"128" doc:"For waitpoint: its key."`
	ExpiryFields                   // for waitpoint
	WorkKeyField                   // for suspend and waitpoint
	UsageField                     // for usage, complete, fail, delay, suspend and wait_children
	UsageFields                    // for usage

	Frames    []api.NewFrame `json:"frames,omitempty" most:"256" doc:"For frames: the frames, 1 to 256, at most 1 MiB together."`
	ClientSeq *int64         `json:"client_seq,omitempty" doc:"For frames: grows with every call under a lease."`

	Children []FlowNode `json:"children,omitempty" doc:"For spawn: the children."`
	SpawnFields
	ChildrenWaitFields // for wait_children, which also has timeout_ms
}

// workHead are the fields of every command.
var workHead = []string{"op", "execution_id", "lease"}

// workFields are the other fields of each command.
var workFields = map[string][]string{
	"renew":    {"ttl_ms"},
	"progress": {"percent", "message"},
	"complete": append([]string{"usage"}, resultNames...),
	"fail":     {"class", "category", "message", "retry_after_ms", "default_policy", "detail", "detail_text", "detail_bytes", "detail_content_type", "usage"},
	"release":  {"reason"},
	"delay":    {"delay_ms", "until", "usage"},
	"step":     append([]string{"name"}, resultNames...),
	"cancel":   {"reason"},
	"suspend": {
		"waitpoints", "resume_condition", "reason_code", "timeout_ms", "timeout_at", "timeout_behavior", "resume_delay_ms",
		"continuation", "continuation_text", "continuation_bytes", "continuation_content_type", "suspension_id", "idempotency_key", "usage",
	},
	"usage":     {"usage", "dedup_key", "already_spent"},
	"waitpoint": {"waitpoint_key", "expires_in_ms", "waitpoint_id", "idempotency_key"},
	"frames":    {"frames", "client_seq"},
	"spawn":     {"children", "defaults", "edges", "on_parent_end", "wait"},
	"wait_children": {
		"names", "policy", "k", "kind", "on_satisfied", "timeout_ms", "usage",
	},
}

var resultNames = []string{"result", "result_text", "result_bytes", "result_content_type"}

// workRequired are the required fields of each command.
var workRequired = map[string]string{"fail": "message", "step": "name", "suspend": "resume_condition", "waitpoint": "waitpoint_key", "frames": "frames", "usage": "usage", "spawn": "children"}

// CheckJSON refuses fields of other commands.
func (w *WorkItem) CheckJSON(given []string) Errors {
	known, ok := workFields[w.Op]
	switch {
	case w.Op == "":
		return nil // missing_field reports it
	case !ok:
		names := slices.Sorted(maps.Keys(workFields))
		return Errors{{Code: jsonx.CodeInvalidArgument, Field: "/op", Detail: "unknown command", Hint: "use " + strings.Join(names, ", ")}}
	}
	var faults Errors
	if name := workRequired[w.Op]; name != "" && !slices.Contains(given, name) {
		faults = append(faults, &Error{Code: jsonx.CodeMissingField, Field: "/" + name, Detail: "this field is required with op " + w.Op})
	}
	for _, name := range given {
		if !slices.Contains(known, name) && !slices.Contains(workHead, name) {
			faults = append(faults, &Error{Code: jsonx.CodeUnknownField, Field: "/" + name, Detail: "op " + w.Op + " has no such field", Hint: jsonx.Hint(name, known)})
		}
	}
	return faults
}
