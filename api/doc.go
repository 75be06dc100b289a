// Package api has the values that travel between a program and FlowFabric, each declared once: ids, codes, executions, policies, flows,
// budgets, quotas, pages. Its structs carry the JSON names of the HTTP API, and encoding/json reads and writes them as the API does:
// durations as whole milliseconds under names that end in _ms, instants in UTC with milliseconds, unknown fields of an answer ignored.
//
// Most programs need package flowfabric alone, which has aliases for the values that everybody types.
package api
