package flowfabrictest

import "github.com/flowfabric/flowfabric"

// Operate has operators' commands. They survive a crash of the process.
func (e *Env) Operate() flowfabric.Operate { return flowfabric.NewOperate(e) }

// Lanes manages lanes. Its commands survive a crash of the process.
func (e *Env) Lanes() flowfabric.Lanes { return flowfabric.NewLanes(e) }

// Workers shows and manages workers. Its commands survive a crash of the process.
func (e *Env) Workers() flowfabric.Workers { return flowfabric.NewWorkers(e) }

// Admin has administrators' commands. They survive a crash of the process.
func (e *Env) Admin() flowfabric.Admin { return flowfabric.NewAdmin(e) }

// Quotas limit rate and concurrency. Its commands survive a crash of the process.
func (e *Env) Quotas() flowfabric.Quotas { return flowfabric.NewQuotas(e) }

// Budgets limit usage. Its commands survive a crash of the process.
func (e *Env) Budgets() flowfabric.Budgets { return flowfabric.NewBudgets(e) }
