package wire

import (
	"reflect"
	"slices"
)

// Operation is one row of the table: what the API does under one method and path. It has no methods, see Call.
type Operation struct {
	ID     string // stable; also the operationId of OpenAPI
	Rule   string // the rule of the specification that states it
	Method string
	Path   string // in the form of http.ServeMux, without the method
	Roles  Role   // any of these may call it
	// Only bounds roles of Roles, and Admin, which may call everything; a role that is not here is not bounded. See Allows.
	Only      map[Role]Condition
	Go        string // the Go call that does it, "Executions.List"; "" with NoGo
	NoGo      string // why there is none
	Command   string // the command that does it, "lanes pause"; "" with NoCommand
	NoCommand string // why there is none
	// Audit is what the audit log calls it, done or refused (U131): the word of the rules, where that is not the ID. See AuditAction.
	Audit    string
	Summary  string
	Status   []int // of success, the usual one first
	Waits    bool  // takes Prefer: wait and wait_ms (U18); its request has WaitFields
	Raw      bool  // the answer is no JSON document: bytes with their own content type, NDJSON, text
	Streams  bool  // pushes server-sent events to who accepts them (U19)
	Secret   bool  // the answer holds a secret: Cache-Control: no-store
	Reserved bool  // answers 501 until it is built
	// Local says what an operation does that only the process can do which has the store: it is no part of the HTTP API, nor of the table.
	Local string

	Request reflect.Type // set by row: the struct of path, query, header and Body
	Answer  reflect.Type // set by row: the JSON type; None without content, Raw for bytes
}

// Allows tells under which conditions a caller with these roles may call the operation: any one of them is enough. None: it may
// not.
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

// AuditAction is what the audit log calls the operation.
func AuditAction(o *Operation) string {
	if o.Audit != "" {
		return o.Audit
	}
	return o.ID
}

// Call is an operation with the types of its request and its answer. Server and client both go through it. It has no methods and
// passes none on, for an Operation has none: those of a generic type are compiled for each of its types, in every package that names one.
type Call[Req, Ans any] struct{ *Operation }

// None is the answer without content, and the body without fields.
type None struct{}

// row is a call as a row of the table, which knows its types.
func row[Req, Ans any](c Call[Req, Ans]) *Operation {
	c.Request, c.Answer = reflect.TypeFor[Req](), reflect.TypeFor[Ans]()
	return c.Operation
}

// Operations is the whole table, section by section. Nobody changes a row.
func Operations() []*Operation {
	return slices.Concat(
		executionCalls, operatorCalls, bulkCalls, workCalls, grantCalls, batchCalls, waitCalls, flowCalls, budgetCalls, quotaCalls, laneCalls,
		namespaceCalls, workerCalls, keyCalls, signingCalls, eventCalls, adminCalls, healthCalls, scheduleCalls, publicCalls,
	)
}

// Encode turns a request into what goes over the network. A path parameter without a value is invalid_argument.
func Encode[Req, Ans any](c Call[Req, Ans], req *Req) (Message, error) {
	return EncodeRequest(c.Operation, req)
}
