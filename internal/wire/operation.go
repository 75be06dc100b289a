package wire

import (
	"reflect"
	"slices"
)

// Operation is one row of the table: what the API does for one method and path. It has no methods, see Call.
type Operation struct {
	ID     string // stable; also the operationId of OpenAPI
	Rule   string // the rule of the specification that states it
	Method string
	Path   string // in the form of http.ServeMux, without the method
	Roles  Role   // any of these can call it
	// Only limits roles of Roles, and Admin, which can otherwise call everything; roles that are not in Only are not limited. See
	// Allows.
	Only      map[Role]Condition
	Go        string // the Go call, "Executions.List"; "" with NoGo
	NoGo      string // why there is none
	Command   string // the command, "lanes pause"; "" with NoCommand
	NoCommand string // why there is none
	// Audit is the action name in the audit log (U131), if it differs from ID. See AuditAction.
	Audit    string
	Summary  string
	Status   []int // of success, the usual one first
	Waits    bool  // accepts Prefer: wait and wait_ms (U18); its request has WaitFields
	Raw      bool  // the answer is not a JSON document: bytes with their own content type, NDJSON, text
	Streams  bool  // sends server-sent events to clients that accept them (U19)
	Secret   bool  // the answer contains a secret: Cache-Control: no-store
	Reserved bool  // answers 501 until implemented
	// Local describes an operation that only the process with the store can perform: it is not part of the HTTP API and of the
	// table.
	Local string

	Request reflect.Type // set by row: the struct with path, query, header and Body
	Answer  reflect.Type // set by row: the JSON type; None without content, Raw for bytes
}

// Allows returns the conditions under which a caller with these roles can call the operation; one of them must hold. None: the
// caller cannot.
func Allows(o *Operation, have Role) []Condition {
	switch {
	case o.Roles&(Open|Any|Token) != 0:
		return []Condition{Always}
	case have&Admin != 0:
		return []Condition{o.Only[Admin]}
	}
	var under []Condition
	for role := Read; role <= Operate; role <<= 1 {
		if o.Roles&have.Held()&role != 0 {
			under = append(under, o.Only[role])
		}
	}
	if slices.Contains(under, Always) {
		return []Condition{Always}
	}
	return under
}

// AuditAction is the action name of the operation in the audit log.
func AuditAction(o *Operation) string {
	if o.Audit != "" {
		return o.Audit
	}
	return o.ID
}

// Call is an operation with the types of its request and its answer, used by server and client. It has no methods and inherits
// none, because methods of a generic type are compiled for each instance, in every package that uses one.
type Call[Req, Ans any] struct{ *Operation }

// None is an answer without content, or a body without fields.
type None struct{}

// row is a call as a row of the table.
func row[Req, Ans any](c Call[Req, Ans]) *Operation {
	c.Request, c.Answer = reflect.TypeFor[Req](), reflect.TypeFor[Ans]()
	return c.Operation
}

// Operations is the whole table, section by section. Rows must not be changed.
func Operations() []*Operation {
	return slices.Concat(
		executionCalls, operatorCalls, bulkCalls, workCalls, grantCalls, batchCalls, waitCalls, flowCalls, budgetCalls, quotaCalls, laneCalls,
		namespaceCalls, workerCalls, keyCalls, signingCalls, eventCalls, streamCalls, webhookCalls, adminCalls, healthCalls, scheduleCalls, publicCalls,
	)
}

// Encode converts a request into an HTTP message. A path parameter without a value is invalid_argument.
func Encode[Req, Ans any](c Call[Req, Ans], req *Req) (Message, error) {
	return EncodeRequest(c.Operation, req)
}
