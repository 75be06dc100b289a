package flowfabric_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Every method of the client, called with somebody's things.

func (w *world) tryClient(ctx context.Context, x things) map[string]func() (any, error) {
	known := flowfabric.Submission{
		Kind: "k", Input: flowfabric.JSON("secret of tenant-a"), SubmitOptions: flowfabric.SubmitOptions{Lane: "tenant-a-lane", IdempotencyKey: "the-key"},
	}
	return map[string]func() (any, error){
		"Submit": func() (any, error) {
			return w.Submit(ctx, known)
		},
		"SubmitMany": func() (any, error) {
			return w.SubmitMany(ctx, []flowfabric.Submission{known})
		},
		"Get":    func() (any, error) { return w.Get(ctx, x.ready) },
		"Wait":   func() (any, error) { return w.Wait(ctx, x.ready) },
		"Cancel": func() (any, error) { return w.Cancel(ctx, x.ready, "") },
		"Nudge":  func() (any, error) { return nil, w.Nudge(ctx, x.lane) },
		"Signal": func() (any, error) {
			return w.Signal(ctx, flowfabric.Signal{WaitpointID: x.waitpoint, Token: badToken(), ExecutionID: x.waiting, Name: "x"})
		},
	}
}

func (w *world) tryExecutions(ctx context.Context, x things) map[string]func() (any, error) {
	e := w.Executions()
	byLane := ops.ListOptions{Filter: ops.Filter{Lane: []string{x.lane}}}
	return map[string]func() (any, error){
		"List":            func() (any, error) { return all(e.List(ctx)) },
		"Page":            func() (any, error) { return e.Page(ctx, byLane) },
		"Count":           func() (any, error) { return e.Count(ctx, ops.Filter{}, ops.CountOptions{By: "lane"}) },
		"Input":           func() (any, error) { return e.Input(ctx, x.ready) },
		"Result":          func() (any, error) { return e.Result(ctx, x.done) },
		"Attempts":        func() (any, error) { return e.Attempts(ctx, x.done) },
		"Attempt":         func() (any, error) { return e.Attempt(ctx, x.done, ops.LatestAttempt) },
		"Leases":          func() (any, error) { return all(e.Leases(ctx, x.done)) },
		"LeasesPage":      func() (any, error) { return e.LeasesPage(ctx, x.done) },
		"Steps":           func() (any, error) { return e.Steps(ctx, x.done) },
		"Suspension":      func() (any, error) { return e.Suspension(ctx, x.waiting) },
		"Suspensions":     func() (any, error) { return all(e.Suspensions(ctx, x.waiting)) },
		"SuspensionsPage": func() (any, error) { return e.SuspensionsPage(ctx, x.waiting) },
		"Signals":         func() (any, error) { return all(e.Signals(ctx, x.waiting)) },
		"SignalsPage":     func() (any, error) { return e.SignalsPage(ctx, x.waiting) },
		"Usage":           func() (any, error) { return e.Usage(ctx, x.done) },
		"Budgets":         func() (any, error) { return e.Budgets(ctx, x.ready) },
		"Explain":         func() (any, error) { return e.Explain(ctx, x.ready) },
		"SetTags":         func() (any, error) { return e.SetTags(ctx, x.done, map[string]*string{"x": nil}) },
		"Children":        func() (any, error) { return all(e.Children(ctx, x.running)) },
		"ChildrenPage":    func() (any, error) { return e.ChildrenPage(ctx, x.running) },
		"NamedInput":      func() (any, error) { return e.NamedInput(ctx, x.running, "a") },
	}
}

func (w *world) tryFlows(ctx context.Context, x things) map[string]func() (any, error) {
	f := w.Flows()
	own := flowfabric.Flow{Kind: "own", IdempotencyKey: "own", Unsealed: true}
	return map[string]func() (any, error){
		"Submit": func() (any, error) { return f.Submit(ctx, own) },
		"Check":  func() (any, error) { return f.Check(ctx, own) },
		"Create": func() (any, error) {
			return f.Create(ctx, flowfabric.Flow{ID: "01890000-0000-7000-8000-000000000099", Kind: "own"})
		},
		"Extend":      func() (any, error) { return f.Extend(ctx, x.flow, flowfabric.FlowExtension{Seal: true}) },
		"Seal":        func() (any, error) { return f.Seal(ctx, x.flow) },
		"Get":         func() (any, error) { return f.Get(ctx, x.flow) },
		"Wait":        func() (any, error) { return f.Wait(ctx, x.flow) },
		"Graph":       func() (any, error) { return f.Graph(ctx, x.flow) },
		"GraphPage":   func() (any, error) { return f.GraphPage(ctx, x.flow) },
		"List":        func() (any, error) { return all(f.List(ctx, flowfabric.FlowQuery{Kind: "k"})) },
		"Page":        func() (any, error) { return f.Page(ctx, flowfabric.FlowQuery{Kind: "k"}) },
		"Members":     func() (any, error) { return all(f.Members(ctx, x.flow)) },
		"MembersPage": func() (any, error) { return f.MembersPage(ctx, x.flow) },
		"Edges":       func() (any, error) { return all(f.Edges(ctx, x.flow)) },
		"EdgesPage":   func() (any, error) { return f.EdgesPage(ctx, x.flow) },
		"Edge":        func() (any, error) { return f.Edge(ctx, x.flow, x.edge) },
		"SetJoin":     func() (any, error) { return f.SetJoin(ctx, x.flow, "a", flowfabric.Join{Policy: flowfabric.JoinAny}) },
		"Join":        func() (any, error) { return f.Join(ctx, x.flow, "b") },
		"Cancel":      func() (any, error) { return f.Cancel(ctx, x.flow, flowfabric.FlowCancel{Reason: "mine"}) },
		"Delete":      func() (any, error) { return nil, f.Delete(ctx, x.flow, flowfabric.FlowDeletion{Reason: "mine"}) },
		"Usage":       func() (any, error) { return f.Usage(ctx, x.flow) },
		"SetTags":     func() (any, error) { return f.SetTags(ctx, x.flow, map[string]*string{"x": nil}) },
		"ReplaceTags": func() (any, error) { return f.ReplaceTags(ctx, x.flow, nil) },
	}
}

func (w *world) tryOperate(ctx context.Context, x things) map[string]func() (any, error) {
	o := w.Operate()
	return map[string]func() (any, error){
		"Replay":      func() (any, error) { return o.Replay(ctx, x.done) },
		"SetPriority": func() (any, error) { return o.SetPriority(ctx, x.ready, 5) },
		"Hold":        func() (any, error) { return o.Hold(ctx, x.ready) },
		"ReleaseHold": func() (any, error) { return o.ReleaseHold(ctx, x.ready) },
		"Revoke":      func() (any, error) { return o.Revoke(ctx, x.running) },
		"Claim":       func() (any, error) { return o.Claim(ctx, x.ready) },
		"Resume":      func() (any, error) { return o.Resume(ctx, x.waiting) },
		"Approve":     func() (any, error) { return o.Approve(ctx, x.waiting, ops.Approve{WaitpointID: x.waitpoint}) },
		"Retain": func() (any, error) {
			return o.Retain(ctx, x.done, ops.RetainOptions{Action: ops.Action{Reason: "r"}})
		},
		"Unretain": func() (any, error) { return o.Unretain(ctx, x.done) },
		"Delete":   func() (any, error) { return nil, o.Delete(ctx, x.done) },
		"Bulk": func() (any, error) {
			return o.Bulk(ctx, ops.BulkRequest{Action: api.BulkCancel, All: true, DryRun: true})
		},
		"BulkStatus":    func() (any, error) { return o.BulkStatus(ctx, x.job) },
		"WaitBulk":      func() (any, error) { return o.WaitBulk(ctx, x.job) },
		"StopBulk":      func() (any, error) { return o.StopBulk(ctx, x.job) },
		"BulkJobs":      func() (any, error) { return all(o.BulkJobs(ctx)) },
		"BulkJobsPage":  func() (any, error) { return o.BulkJobsPage(ctx) },
		"BulkItems":     func() (any, error) { return all(o.BulkItems(ctx, x.job)) },
		"BulkItemsPage": func() (any, error) { return o.BulkItemsPage(ctx, x.job) },
	}
}

func (w *world) tryWaitpoints(ctx context.Context, x things) map[string]func() (any, error) {
	p := w.Waitpoints()
	return map[string]func() (any, error){
		"List":       func() (any, error) { return all(p.List(ctx, ops.WaitpointQuery{State: "all"})) },
		"Page":       func() (any, error) { return p.Page(ctx, ops.WaitpointQuery{ExecutionID: x.waiting}) },
		"Get":        func() (any, error) { return p.Get(ctx, x.waitpoint) },
		"Token":      func() (any, error) { return p.Token(ctx, x.waiting, x.waitpoint) },
		"Reissue":    func() (any, error) { return p.Reissue(ctx, x.waitpoint) },
		"Close":      func() (any, error) { return p.Close(ctx, x.waitpoint) },
		"NewLink":    func() (any, error) { return p.NewLink(ctx, x.waitpoint, ops.LinkOptions{Approver: "ben"}) },
		"Links":      func() (any, error) { return p.Links(ctx, x.waitpoint) },
		"LinkURL":    func() (any, error) { return p.LinkURL(ctx, x.link) },
		"RevokeLink": func() (any, error) { return nil, p.RevokeLink(ctx, x.link) },
		"OpenLink":   func() (any, error) { return p.OpenLink(ctx, x.link, badToken()) },
		"Decide": func() (any, error) {
			return p.Decide(ctx, x.link, badToken(), api.LinkDecision{Decision: "approve"})
		},
		"Suspended":     func() (any, error) { return all(p.Suspended(ctx)) },
		"SuspendedPage": func() (any, error) { return p.SuspendedPage(ctx, ops.SuspendedQuery{Lane: x.lane}) },
		"Inbox":         func() (any, error) { return all(p.Inbox(ctx)) },
		"InboxPage":     func() (any, error) { return p.InboxPage(ctx, ops.SuspendedQuery{Approver: "ann"}) },
	}
}

// tryEvents tells what the log shows besides the caller's own.
func (w *world) tryEvents(ctx context.Context) map[string]func() (any, error) {
	foreign := func(events []flowfabric.Event) []flowfabric.Event {
		return slices.DeleteFunc(events, func(e flowfabric.Event) bool { return e.Namespace == "tenant-a" })
	}
	from := ops.ReadOptions{After: api.FromStart, Limit: 1000}
	return map[string]func() (any, error){
		"Read": func() (any, error) {
			page, err := w.Events().Read(ctx, from)
			return foreign(page.Events), err
		},
		"Follow": func() (any, error) {
			page, err := w.Events().Read(ctx, from)
			if err != nil {
				return nil, err
			}
			var events []flowfabric.Event
			for event, err := range w.Events().Follow(ctx, from) {
				if events = append(events, event); err != nil || len(events) == len(page.Events) {
					return foreign(events), err
				}
			}
			return foreign(events), ctx.Err()
		},
	}
}

func (w *world) tryQuotas(ctx context.Context) map[string]func() (any, error) {
	q := w.Quotas()
	return map[string]func() (any, error){
		"List": func() (any, error) { return all(q.List(ctx)) },
		"Page": func() (any, error) { return q.Page(ctx) },
		"Get":  func() (any, error) { return q.Get(ctx, "shared") },
	}
}

func (w *world) tryBudgets(ctx context.Context, x things) map[string]func() (any, error) {
	b := w.Budgets()
	return map[string]func() (any, error){
		"Create": func() (any, error) {
			return b.Create(ctx, api.Budget{Name: "child", Parent: x.budget, Dimensions: map[string]api.BudgetLimits{"calls": {}}})
		},
		"Get":    func() (any, error) { return b.Get(ctx, x.budget) },
		"List":   func() (any, error) { return all(b.List(ctx)) },
		"Page":   func() (any, error) { return b.Page(ctx) },
		"Update": func() (any, error) { return b.Update(ctx, x.budget, api.BudgetUpdate{}) },
		"Close":  func() (any, error) { return b.Close(ctx, x.budget) },
		"Reopen": func() (any, error) { return b.Reopen(ctx, x.budget) },
		"Reset":  func() (any, error) { return b.Reset(ctx, x.budget) },
		"Delete": func() (any, error) { return nil, b.Delete(ctx, x.budget) },
		"Charge": func() (any, error) {
			return b.Charge(ctx, x.budget, api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"calls": 1}}})
		},
		"Refund":     func() (any, error) { return b.Refund(ctx, x.budget, x.done) },
		"Epochs":     func() (any, error) { return all(b.Epochs(ctx, x.budget)) },
		"EpochsPage": func() (any, error) { return b.EpochsPage(ctx, x.budget) },
		"Spend":      func() (any, error) { return all(b.Spend(ctx, x.budget)) },
		"SpendPage":  func() (any, error) { return b.SpendPage(ctx, x.budget) },
	}
}

func (w *world) tryLanes(ctx context.Context, x things) map[string]func() (any, error) {
	l := w.Lanes()
	return map[string]func() (any, error){
		"List":    func() (any, error) { return all(l.List(ctx)) },
		"Page":    func() (any, error) { return l.Page(ctx) },
		"Get":     func() (any, error) { return l.Get(ctx, x.lane) },
		"Pause":   func() (any, error) { return l.Pause(ctx, x.lane) },
		"Resume":  func() (any, error) { return l.Resume(ctx, x.lane) },
		"Drain":   func() (any, error) { return l.Drain(ctx, x.lane) },
		"Disable": func() (any, error) { return l.Disable(ctx, x.lane) },
	}
}

func (w *world) tryWorkers(ctx context.Context, x things) map[string]func() (any, error) {
	f := w.Workers()
	return map[string]func() (any, error){
		"List":    func() (any, error) { return all(f.List(ctx, ops.WorkerFilter{State: "all"})) },
		"Page":    func() (any, error) { return f.Page(ctx, ops.WorkerFilter{Lane: x.lane, State: "all"}) },
		"Get":     func() (any, error) { return f.Get(ctx, x.instance) },
		"Leases":  func() (any, error) { return f.Leases(ctx, x.instance) },
		"Drain":   func() (any, error) { return nil, f.Drain(ctx, ops.WorkerTarget{WorkerID: x.worker}) },
		"Undrain": func() (any, error) { return nil, f.Undrain(ctx, ops.WorkerTarget{InstanceID: x.instance}) },
		"MarkDead": func() (any, error) {
			return nil, f.MarkDead(ctx, x.instance, ops.DeadOptions{Reason: "r"})
		},
	}
}

func (w *world) tryWork(ctx context.Context, x things) map[string]func() (any, error) {
	target := api.TargetedClaim{WorkerID: "tenant-a-worker", InstanceID: "tenant-a-instance"}
	return map[string]func() (any, error){
		"Heartbeat": func() (any, error) {
			beat, err := w.Work().Heartbeat(ctx, x.instance, []api.Lease{x.lease})
			return fmt.Sprint(beat.Registered, beat.Drain, flowfabric.CodeOf(beat.Leases[0].Err)), err
		},
		"Claim": func() (any, error) {
			answer, err := w.Work().Claim(ctx, api.ClaimRequest{WorkerID: "tenant-a-worker", InstanceID: "tenant-a-instance", Lanes: []string{x.lane}})
			return len(answer.Tasks), err
		},
		"ClaimResumed": func() (any, error) { return w.Work().ClaimResumed(ctx, x.ready, target) },
		"Reclaim":      func() (any, error) { return w.Work().Reclaim(ctx, x.running, target) },
		"Grant": func() (any, error) {
			return w.Work().Grant(ctx, api.GrantRequest{WorkerID: target.WorkerID, InstanceID: target.InstanceID, ExecutionID: x.ready})
		},
		"ClaimGrant": func() (any, error) {
			return w.Work().ClaimGrant(ctx, x.grant, api.GrantClaim{WorkerID: target.WorkerID, InstanceID: target.InstanceID})
		},
		"VerifyGrant": func() (any, error) { return nil, w.Work().VerifyGrant(ctx, x.grant) },
		"ReturnGrant": func() (any, error) { return nil, w.Work().ReturnGrant(ctx, x.grant) },
		"Do": func() (any, error) {
			var items []api.WorkItem
			for _, op := range []api.Op{
				api.OpRenew, api.OpProgress, api.OpComplete, api.OpFail, api.OpRelease, api.OpDelay, api.OpStep, api.OpCancel,
				api.OpSuspend, api.OpWaitpoint,
			} {
				items = append(items, api.WorkItem{
					Op: op, ID: x.running, Lease: x.lease, Step: "s", Until: time.Now().Add(time.Hour),
					Suspension: &flowfabric.Suspension{Until: flowfabric.OperatorOnly()}, Waitpoint: &api.NewWaitpoint{Key: "k"},
				})
			}
			items = append(items, api.WorkItem{Op: api.OpComplete, ID: x.running, Override: true})
			answers, err := w.Work().Do(ctx, items...)
			var codes []string
			for _, answer := range answers {
				codes = append(codes, flowfabric.CodeOf(answer.Err))
			}
			return codes, err
		},
	}
}

func (w *world) tryAdmin(ctx context.Context, x things) map[string]func() (any, error) {
	foreign := func(rows []api.AuditRow) []api.AuditRow {
		return slices.DeleteFunc(rows, func(r api.AuditRow) bool { return r.Namespace == "tenant-a" })
	}
	return map[string]func() (any, error){
		"Audit": func() (any, error) {
			rows, err := all(w.Admin().Audit(ctx))
			return foreign(rows), err
		},
		"AuditPage": func() (any, error) {
			page, err := w.Admin().AuditPage(ctx, ops.AuditFilter{Namespace: x.namespace})
			return page.Items, err
		},
		"VerifyAudit": func() (any, error) { return w.Admin().VerifyAudit(ctx, x.namespace) },
		"Whoami":      func() (any, error) { return w.Admin().Whoami(ctx) },
	}
}

func (w *world) tryKeys(ctx context.Context, x things) map[string]func() (any, error) {
	k := w.Admin().APIKeys()
	return map[string]func() (any, error){
		"List": func() (any, error) { return all(k.List(ctx)) },
		"Page": func() (any, error) { return k.Page(ctx) },
		"Get":  func() (any, error) { return k.Get(ctx, x.key) },
		"Create": func() (any, error) {
			return k.Create(ctx, api.APIKeySettings{Name: "n", Roles: []string{"read"}, Namespaces: []string{x.namespace}})
		},
		"Change": func() (any, error) { return k.Change(ctx, x.key, api.APIKeyChange{MaxInFlight: new(int)}) },
		"Revoke": func() (any, error) { return nil, k.Revoke(ctx, x.key) },
		"Rotate": func() (any, error) { return k.Rotate(ctx, x.key) },
	}
}

func (w *world) tryNamespaces(ctx context.Context, x things) map[string]func() (any, error) {
	n := w.Admin().Namespaces()
	return map[string]func() (any, error){
		"List":   func() (any, error) { return all(n.List(ctx)) },
		"Page":   func() (any, error) { return n.Page(ctx) },
		"Get":    func() (any, error) { return n.Get(ctx, x.namespace) },
		"Put":    func() (any, error) { return n.Put(ctx, x.namespace, api.NamespaceSettings{}) },
		"Delete": func() (any, error) { return nil, n.Delete(ctx, x.namespace) },
	}
}
