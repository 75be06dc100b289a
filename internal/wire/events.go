package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// eventCalls are the event log and the audit log of section 2.7.
var eventCalls = []*Operation{row(ListEvents), row(ListAudit), row(VerifyAudit)}

// Operations that read the logs.
var (
	ListEvents = Call[EventsRequest, api.EventPage]{&Operation{
		ID: "list_events", Rule: "U106", Method: http.MethodGet, Path: "/v1/events", Roles: Read | Submit | Work,
		Only: map[Role]Condition{Submit: OwnEvents, Work: OwnFeed},
		Go:   "Events.Follow", Command: "events --follow", Summary: "Read or follow the event log",
		Status: []int{http.StatusOK}, Waits: true, Streams: true,
	}}
	ListAudit = Call[AuditRequest, api.Page[api.AuditRow]]{&Operation{
		ID: "list_audit", Rule: "U110", Method: http.MethodGet, Path: "/v1/audit", Roles: Admin,
		Go: "Admin.Audit", Command: "audit list", Summary: "Read the audit log", Status: []int{http.StatusOK},
	}}
	VerifyAudit = Call[VerifyAuditRequest, api.AuditCheck]{&Operation{
		ID: "verify_audit", Rule: "U131", Method: http.MethodGet, Path: "/v1/audit/verify", Roles: Admin,
		Go: "Admin.VerifyAudit", Command: "audit verify", Summary: "Verify the audit chain of a namespace", Status: []int{http.StatusOK},
	}}
)

// PositionFields select where to read a log from (U16, U19).
type PositionFields struct {
	After       string `query:"after" doc:"A cursor, start or end; end if absent."`
	Limit       *int   `query:"limit" minimum:"0" doc:"Events per page; 100 if absent, at most 1000."`
	LastEventID string `header:"Last-Event-ID" argument:"after" doc:"With server-sent events: where to continue."`
	LastID      string `query:"last_event_id" argument:"after" doc:"Last-Event-ID for clients that cannot set the header."`
}

// Position is where to read from: the header, else last_event_id, else after.
func (p PositionFields) Position() string {
	for _, position := range []string{p.LastEventID, p.LastID} {
		if position != "" {
			return position
		}
	}
	return p.After
}

// EventsRequest reads the event log.
type EventsRequest struct {
	WaitFields
	PositionFields
	Kind             []string           `query:"kind" doc:"Kinds, or their beginnings up to a dot, by comma."`
	ExecutionID      string             `query:"execution_id" doc:"Events of this execution."`
	FlowID           string             `query:"flow_id" doc:"Events of this flow."`
	Lane             string             `query:"lane" doc:"Events in this lane."`
	Outcome          string             `query:"outcome" doc:"Endings with this outcome."`
	WorkerInstanceID string             `query:"worker_instance_id" doc:"Events of this instance."`
	Tags             map[string]*string `query:"tag." doc:"tag.<key>=<value>."`
	Actor            string             `query:"actor" enum:"client,worker,operator,approver,engine" doc:"Events by this type of actor."`
	Since            Time               `query:"since" doc:"Events at or after this time."`
}

// AuditRequest reads the audit log.
type AuditRequest struct {
	PageFields
	Principal string `query:"principal" doc:"Principal of the change."`
	Action    string `query:"action" doc:"Action."`
	Entity    string `query:"entity" doc:"Type of the entity."`
	EntityID  string `query:"entity_id" doc:"Id of the entity."`
	From      Time   `query:"from" doc:"At or after this time."`
	To        Time   `query:"to" doc:"Before this time."`
}

// VerifyAuditRequest verifies the chain of the caller's namespace.
type VerifyAuditRequest struct {
	Shared bool `query:"shared" doc:"The chain of rows without a namespace; only for keys of all namespaces."`
}
