// Package server serves the operations of an engine over HTTP. It decides who calls, what the caller may do, how much it may send
// and whether the request can be read, in the order of rule U24, and nothing about executions: package service performs the
// operation, for the caller of the request.
//
// Everything goes by the table of operations in package wire. A handler is registered for a wire.Call; routes, roles, limits, the
// OpenAPI document and the answers to wrong methods follow from the row. huma describes the API and serves nothing: its own checks
// would answer with other codes than the rules.
package server
