package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// waitCalls are suspensions of an execution (sections 2.1 and 2.3), and section 2.4 except operations with a token.
var waitCalls = []*Operation{
	row(ListExecutionWaitpoints), row(ListExecutionSignals), row(ListSuspensions), row(GetSuspension), row(ResumeExecution), row(ApproveExecution),
	row(SuspendExecution), row(CreateWaitpoint), row(ListWaitpoints), row(GetWaitpoint), row(ReadWaitpointToken), row(ReissueToken), row(CloseWaitpoint),
	row(CreateLink), row(ListLinks), row(RevokeLink), row(ReadLinkURL), row(ListSuspended), row(ListApprovals),
}

// holderToo limits work to executions that it holds the lease of.
var holderToo = map[Role]Condition{Work: WithLease}

// Operations that read and end suspensions of an execution.
var (
	ListExecutionWaitpoints = Call[ListExecutionWaitpointsRequest, api.Page[api.Waitpoint]]{&Operation{
		ID: "list_execution_waitpoints", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/waitpoints", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Waitpoints.List", Command: "waitpoints", Summary: "List the waitpoints of an execution", Status: []int{http.StatusOK},
	}}
	ListExecutionSignals = Call[ListSignalsRequest, api.Page[api.SignalRecord]]{&Operation{
		ID: "list_execution_signals", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/signals", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Signals", Command: "signals", Summary: "List the signals that an execution received", Status: []int{http.StatusOK},
	}}
	ListSuspensions = Call[PageByID, api.Page[api.SuspensionRecord]]{&Operation{
		ID: "list_suspensions", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/suspensions", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Suspensions", Command: "suspensions", Summary: "List the suspensions of an execution", Status: []int{http.StatusOK},
	}}
	GetSuspension = Call[GetSuspensionRequest, api.SuspensionRecord]{&Operation{
		ID: "get_suspension", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/suspension", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Suspension", Command: "suspension", Summary: "Show the current or last suspension",
		Status: []int{http.StatusOK},
	}}
	ResumeExecution = Call[ResumeRequest, api.Execution]{&Operation{
		ID: "resume_execution", Rule: "U49", Method: http.MethodPost, Path: "/v1/executions/{id}/resume", Roles: Operate,
		Audit: "resume", Go: "Operate.Resume", Command: "resume", Summary: "Resume a suspended execution, whatever it waits for", Status: []int{http.StatusOK},
	}}
	ApproveExecution = Call[ApproveRequest, api.SignalReceipt]{&Operation{
		ID: "approve_execution", Rule: "U52", Method: http.MethodPost, Path: "/v1/executions/{id}/approve", Roles: Operate,
		Audit: "approve", Go: "Operate.Approve", Command: "approve", Summary: "Send approval, rejection or another signal to a suspended execution",
		Status: []int{http.StatusOK},
	}}
	SuspendExecution = Call[SuspendRequest, SuspendAnswer]{&Operation{
		ID: "suspend_execution", Rule: "U71", Method: http.MethodPost, Path: "/v1/executions/{id}/suspend", Roles: Work,
		Go: "Work.Do(suspend)", NoCommand: workerOnly, Summary: "Give the work back until signals arrive", Status: []int{http.StatusOK}, Secret: true,
	}}
	CreateWaitpoint = Call[CreateWaitpointRequest, api.IssuedWaitpoint]{&Operation{
		ID: "create_waitpoint", Rule: "U72", Method: http.MethodPost, Path: "/v1/executions/{id}/waitpoints", Roles: Work,
		Go: "Work.Do(waitpoint)", NoCommand: workerOnly, Summary: "Create a waitpoint before a suspension uses it", Status: []int{http.StatusCreated}, Secret: true,
	}}
)

// The calls on waitpoints and links.
var (
	ListWaitpoints = Call[ListWaitpointsRequest, api.Page[api.Waitpoint]]{&Operation{
		ID: "list_waitpoints", Rule: "U79", Method: http.MethodGet, Path: "/v1/waitpoints", Roles: Read,
		Go: "Waitpoints.List", Command: "waitpoints", Summary: "List waitpoints", Status: []int{http.StatusOK},
	}}
	GetWaitpoint = Call[ByWaitpoint, api.Waitpoint]{&Operation{
		ID: "get_waitpoint", Rule: "U79", Method: http.MethodGet, Path: "/v1/waitpoints/{waitpoint}", Roles: Read,
		Go: "Waitpoints.Get", Command: "waitpoints get", Summary: "Show a waitpoint", Status: []int{http.StatusOK},
	}}
	ReadWaitpointToken = Call[WaitpointTokenRequest, api.IssuedWaitpoint]{&Operation{
		ID: "read_waitpoint_token", Rule: "U80", Method: http.MethodGet, Path: "/v1/executions/{id}/waitpoints/{waitpoint}/token", Roles: Operate,
		Go: "Waitpoints.Token", Command: "token", Summary: "Show the token of a waitpoint; recorded in the audit log", Status: []int{http.StatusOK}, Secret: true,
	}}
	ReissueToken = Call[ReissueRequest, api.IssuedWaitpoint]{&Operation{
		ID: "reissue_token", Rule: "U80", Method: http.MethodPost, Path: "/v1/waitpoints/{waitpoint}/reissue", Roles: Operate,
		Go: "Waitpoints.Reissue", Command: "token --reissue", Summary: "Invalidate all tokens and links of a waitpoint and show a new token",
		Status: []int{http.StatusOK}, Secret: true,
	}}
	CloseWaitpoint = Call[CloseWaitpointRequest, api.CloseResult]{&Operation{
		ID: "close_waitpoint", Rule: "U83", Method: http.MethodPost, Path: "/v1/waitpoints/{waitpoint}/close", Roles: Work | Operate, Only: holderToo,
		Go: "Waitpoints.Close", Command: "waitpoints close", Summary: "Close a waitpoint that no suspension uses", Status: []int{http.StatusOK},
	}}
	CreateLink = Call[CreateLinkRequest, api.IssuedLink]{&Operation{
		ID: "create_link", Rule: "U84", Method: http.MethodPost, Path: "/v1/waitpoints/{waitpoint}/links", Roles: Work | Operate, Only: holderToo,
		Go: "Waitpoints.NewLink", Command: "link", Summary: "Create a link by which a person decides without an account",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
	ListLinks = Call[ListLinksRequest, api.Page[api.ApprovalLink]]{&Operation{
		ID: "list_links", Rule: "U84", Method: http.MethodGet, Path: "/v1/waitpoints/{waitpoint}/links", Roles: Work | Operate, Only: holderToo,
		Go: "Waitpoints.Links", Command: "links", Summary: "List the links of a waitpoint", Status: []int{http.StatusOK},
	}}
	RevokeLink = Call[RevokeLinkRequest, None]{&Operation{
		ID: "revoke_link", Rule: "U84", Method: http.MethodDelete, Path: "/v1/links/{link}", Roles: Work | Operate, Only: holderToo,
		Go: "Waitpoints.RevokeLink", Command: "links revoke", Summary: "Revoke a link", Status: []int{http.StatusNoContent},
	}}
	ReadLinkURL = Call[ByLink, api.IssuedLink]{&Operation{
		ID: "read_link_url", Rule: "U84", Method: http.MethodGet, Path: "/v1/links/{link}/url", Roles: Operate,
		Go: "Waitpoints.LinkURL", Command: "links url", Summary: "Show the address of a link; recorded in the audit log",
		Status: []int{http.StatusOK}, Secret: true,
	}}
	ListSuspended = Call[ListSuspendedRequest, api.Page[api.Suspended]]{&Operation{
		ID: "list_suspended", Rule: "U85", Method: http.MethodGet, Path: "/v1/suspended", Roles: Read,
		Go: "Waitpoints.Suspended", Command: "suspended", Summary: "List suspended executions, oldest first", Status: []int{http.StatusOK},
	}}
	ListApprovals = Call[ListApprovalsRequest, api.Page[api.Suspended]]{&Operation{
		ID: "list_approvals", Rule: "U85", Method: http.MethodGet, Path: "/v1/approvals", Roles: Read,
		Go: "Waitpoints.Inbox", Command: "approvals", Summary: "List executions that wait for an approval, oldest first", Status: []int{http.StatusOK},
	}}
)

// ByWaitpoint identifies a waitpoint in the path.
type ByWaitpoint struct {
	Waitpoint string `path:"waitpoint" argument:"waitpoint_id" doc:"Id of the waitpoint."`
}

// ByLink identifies a link in the path.
type ByLink struct {
	Link string `path:"link" argument:"link_id" doc:"Id of the link."`
}

// LeaseHeaderField is the lease in the header of a call whose body can contain it instead (U27).
type LeaseHeaderField struct {
	LeaseHeader LeaseRef `header:"FlowFabric-Lease" argument:"lease" doc:"For workers: the lease as text, instead of the field lease."`
}

// ListExecutionWaitpointsRequest lists the waitpoints of an execution.
type ListExecutionWaitpointsRequest struct {
	PageByID
	IncludeClosed bool `query:"include_closed" doc:"Also closed ones."`
}

// ListSignalsRequest lists the signals of an execution.
type ListSignalsRequest struct {
	PageByID
	Suspension string `query:"suspension" argument:"suspension_id" doc:"Only the signals of this suspension."`
	Inline     bool   `query:"inline" doc:"Include payloads over 64 KiB. A page then has at most 32 signals."`
	EncodingField
}

// GetSuspensionRequest shows a suspension.
type GetSuspensionRequest struct {
	ByID
	Inline bool `query:"inline" doc:"Include payloads over 64 KiB."`
	EncodingField
}

// ResumeRequest ends a suspension by an operator's decision.
type ResumeRequest struct {
	ByID
	Body struct {
		ActionFields
		ResumeFields
	}
}

// ResumeFields are the options of a resume.
type ResumeFields struct {
	DelayMS              int64  `json:"delay_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Delay before it continues."`
	ExpectedSuspensionID string `json:"expected_suspension_id,omitempty" doc:"Refuse if another suspension is open; if it was resumed before, succeed."`
}

// ApproveRequest is an operator's signal.
type ApproveRequest struct {
	ByID
	Body struct {
		ActionFields
		ApproveFields
	}
}

// ApproveFields describe an operator's signal.
type ApproveFields struct {
	WaitpointID string `json:"waitpoint_id,omitempty" doc:"Waitpoint; default: the only active one."`
	Name        string `json:"name" required:"true" maxLength:"128" doc:"approved, rejected or another word."`
	Suffix      string `json:"suffix,omitempty" maxLength:"128" doc:"Distinguishes several decisions of one person."`
	Lane        string `json:"lane,omitempty" maxLength:"64" doc:"Refuse if the execution is in another lane."`
	Comment     string `json:"comment,omitempty" maxLength:"4096" doc:"Comment; it is the payload if there is no other."`
	PayloadField
}

// WaitpointTokenRequest reads a token.
type WaitpointTokenRequest struct {
	ByID
	ByWaitpoint
}

// ListWaitpointsRequest lists waitpoints.
type ListWaitpointsRequest struct {
	PageFields
	State        string `query:"state" enum:"pending,active,closed,all" doc:"Only those in this state; default pending and active."`
	WaitpointKey string `query:"waitpoint_key" doc:"Only those with this key."`
	ExecutionID  string `query:"execution_id" doc:"Only those of this execution."`
}

// ReissueRequest invalidates the tokens of a waitpoint.
type ReissueRequest struct {
	ByWaitpoint
	Body struct{ ActionFields }
}

// HolderFields are common fields of workers' and operators' requests about a waitpoint or a link.
type HolderFields struct {
	LeaseField
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason."`
}

// CloseWaitpointRequest closes a waitpoint: with a lease as the worker, else as an operator.
type CloseWaitpointRequest struct {
	ByWaitpoint
	LeaseHeaderField
	Body HolderFields
}

// CreateLinkRequest creates a link: with a lease as the worker, else as an operator.
type CreateLinkRequest struct {
	ByWaitpoint
	LeaseHeaderField
	Body struct {
		LeaseField
		LinkFields
	}
}

// LinkFields describe a link.
type LinkFields struct {
	Approver        string           `json:"approver" required:"true" maxLength:"256" doc:"The person who is asked."`
	Decisions       []api.LinkChoice `json:"decisions,omitempty" maxItems:"8" doc:"Possible answers, 1 to 8; default approve and reject."`
	ExpiresInMS     *int64           `json:"expires_in_ms,omitempty" minimum:"60000" maximum:"7776000000" doc:"Default 604800000."`
	Title           string           `json:"title,omitempty" doc:"The question in one line."`
	Message         string           `json:"message,omitempty" doc:"The question in full."`
	CommentRequired bool             `json:"comment_required,omitempty" doc:"Whether a comment is required."`
}

// ListLinksRequest lists the links of a waitpoint.
type ListLinksRequest struct {
	ByWaitpoint
	PageFields
	LeaseHeader LeaseRef `header:"FlowFabric-Lease" argument:"lease" doc:"For workers: the lease as text."`
}

// RevokeLinkRequest revokes a link: with a lease as the worker, else as an operator.
type RevokeLinkRequest struct {
	ByLink
	LeaseHeaderField
	Body HolderFields
}

// SuspendedFields select suspended executions. All given ones must match.
type SuspendedFields struct {
	Lane     string             `query:"lane" doc:"In this lane."`
	FlowID   string             `query:"flow_id" doc:"Members of this flow."`
	Tags     map[string]*string `query:"tag." doc:"tag.<key>=<value>."`
	Approver string             `query:"approver" doc:"With a link for this person."`
}

// ListSuspendedRequest lists suspended executions.
type ListSuspendedRequest struct {
	SuspendedFields
	ReasonCode string `query:"reason_code" doc:"With this reason."`
	PageFields
}

// ListApprovalsRequest lists executions that wait for an approval.
type ListApprovalsRequest struct {
	SuspendedFields
	PageFields
}
