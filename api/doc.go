// Package api declares the values that programs and FlowFabric exchange: ids, codes, executions, policies, flows, budgets,
// quotas, pages. Its structs have the JSON names of the HTTP API, and encoding/json reads and writes them as the API does:
// durations as whole milliseconds under names that end in _ms, times in UTC with milliseconds; unknown fields of answers are
// ignored.
//
// Most programs need only package flowfabric, which has aliases for the common types.
package api
