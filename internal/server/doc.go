// Package server speaks HTTP for a Client. It decides who calls, what the caller may do, how much it may send and whether the request
// can be read, in the order of rule U24, and nothing about executions: that is the Client's.
//
// Everything goes by the table of operations in package wire. A handler is registered for a wire.Call; routes, roles, limits, the
// OpenAPI document and the answers to wrong methods follow from the row. huma describes the API and serves nothing: its own checks
// would answer with other codes than the rules.
package server
