// Package wire is the HTTP API as data: one table of operations, and the JSON types of their requests and answers.
//
// Server, remote client, command line, OpenAPI document and role checks read the same table, so they cannot disagree. An
// operation is one Call, a variable in the file of its section:
//
//	var GetThing = Call[GetThingRequest, Thing]{&Operation{ID: "get_thing", Rule: "U99", Method: "GET", Path: "/v1/things/{id}", ...}}
//
// and its name in the list at the top of that file; a test finds a Call that is not listed. Tags on the fields of a request say
// where they are sent: path:"id", query:"limit", query:"tag." (all parameters with this prefix, as a map), header:"If-Match", and
// Body for the JSON body, which package jsonx reads and writes. The tags doc, enum, minimum, maximum and maxLength only describe
// fields; the rules check them. The tags required:"true" and oneof:"group" are checked when a request is read.
//
// wire knows no engine, no server and no network, and imports only jsonx and the standard library. Rule numbers (U5, U27, ...)
// are those of the specification; tests cite them.
package wire
