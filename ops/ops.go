// Package ops has the groups of calls of a client that show and control what a store holds: executions, events, waitpoints, lanes,
// quotas, budgets, workers, the commands of operators, and administration. A client returns them: client.Lanes(), client.Admin().
//
// Their values are those of package api. Package flowfabric, which most programs need alone, submits, waits and runs workers.
package ops

import "github.com/flowfabric/flowfabric/internal/transport"

// Groups are the groups of calls of one client.
type Groups struct{ conn transport.Connection }

// On returns the groups of calls over a connection. Programs get them from their client.
func On(c transport.Connection) Groups { return Groups{c} }

// Executions reads executions and their parts.
func (g Groups) Executions() Executions { return Executions{g.conn} }

// Operate returns the calls of operators on executions.
func (g Groups) Operate() Operate { return Operate{g.conn, g.conn.Clock} }

// Waitpoints returns the calls on waitpoints.
func (g Groups) Waitpoints() Waitpoints { return Waitpoints{g.conn} }

// Streams reads what attempts say while they work.
func (g Groups) Streams() Streams { return Streams{g.conn, g.conn.Clock} }

// Events reads the event log.
func (g Groups) Events() Events { return Events{g.conn, g.conn.Clock} }

// Quotas returns the calls on quotas.
func (g Groups) Quotas() Quotas { return Quotas{g.conn} }

// Lanes returns the calls on lanes.
func (g Groups) Lanes() Lanes { return Lanes{g.conn} }

// Workers returns the calls on worker instances.
func (g Groups) Workers() Workers { return Workers{g.conn} }

// Budgets returns the calls on budgets.
func (g Groups) Budgets() Budgets { return Budgets{g.conn} }

// Admin returns the calls of administrators.
func (g Groups) Admin() Admin { return Admin{g.conn} }
