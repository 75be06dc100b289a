// Package rules shows the rules of flows, admission and budgets over plain HTTP: every rule by a test that is named after
// it, on each store, in the JSON that goes over the wire. It contains tests alone. How the rules are kept under races and crashes is
// tested where they are decided.
package rules
