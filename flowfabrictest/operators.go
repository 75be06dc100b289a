package flowfabrictest

import "github.com/flowfabric/flowfabric"

// Operate is what operators do. Its commands survive the death of the process.
func (e *Env) Operate() flowfabric.Operate { return flowfabric.NewOperate(e) }

// Lanes steers the lanes. Its commands survive the death of the process.
func (e *Env) Lanes() flowfabric.Lanes { return flowfabric.NewLanes(e) }

// Workers shows and steers the fleet. Its commands survive the death of the process.
func (e *Env) Workers() flowfabric.Workers { return flowfabric.NewWorkers(e) }

// Admin is what administrators do. Its commands survive the death of the process.
func (e *Env) Admin() flowfabric.Admin { return flowfabric.NewAdmin(e) }

// Quotas limit when work starts. Its commands survive the death of the process.
func (e *Env) Quotas() flowfabric.Quotas { return flowfabric.NewQuotas(e) }

// Budgets limit what work uses. Its commands survive the death of the process.
func (e *Env) Budgets() flowfabric.Budgets { return flowfabric.NewBudgets(e) }
