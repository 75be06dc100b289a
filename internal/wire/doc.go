// Package wire is the HTTP API as data: one table of operations, and the JSON types of their requests and answers.
//
// Server, remote client, command line, OpenAPI document and role checks read the same table, so they cannot disagree. An operation
// is one Call, a variable in the file of its section:
//
//	var GetThing = Call[GetThingRequest, Thing]{&Operation{ID: "get_thing", Rule: "U99", Method: "GET", Path: "/v1/things/{id}", ...}}
//
// and its name in the list at the head of that file; a test finds a Call that is in no list. The fields of a request say by their
// tags where they travel: path:"id", query:"limit", query:"tag." (all parameters that begin so, as a map), header:"If-Match", and
// Body for the JSON body, which package jsonx reads and writes. Tags doc, enum, minimum, maximum, maxLength describe fields and check
// nothing: the rules do. The tags required:"true" and oneof:"group" are checked when a request is read.
//
// wire knows no engine, no server and no network, and imports jsonx and the standard library alone. Rule numbers (U5, U27, ...) are
// those of the specification; tests cite them.
package wire
