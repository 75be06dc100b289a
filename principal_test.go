package flowfabric_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/principal"
)

// as is a context whose calls are made for somebody of one namespace.
func as(ctx context.Context, namespace string) context.Context {
	return principal.With(ctx, principal.Principal{
		Name: "admin-of-" + namespace, Namespaces: []string{namespace}, Operator: true, RequestID: "r-" + namespace, Address: "192.0.2.1",
	})
}

// things are what one tenant has.
type things struct {
	ready, running, done                        flowfabric.ID
	lease                                       flowfabric.Lease
	worker, instance, job, lane, key, namespace string
	waiting                                     flowfabric.ID // suspended, for an approval
	waitpoint, link                             string
}

// nobodys are things that do not exist.
func nobodys() things {
	uuid := func(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012d", n) }
	lease := flowfabric.Lease{ExecutionID: flowfabric.ID(uuid(2)), ID: uuid(5), Epoch: 1, AttemptID: uuid(6)}
	return things{
		ready: flowfabric.ID(uuid(1)), running: flowfabric.ID(uuid(2)), done: flowfabric.ID(uuid(3)), lease: lease,
		worker: "no-worker", instance: "no-instance", job: uuid(4), lane: "no-lane", key: "aaaaaaaaaaaa", namespace: "no-namespace",
		waiting: flowfabric.ID(uuid(7)), waitpoint: uuid(8), link: uuid(9),
	}
}

// furnish gives a namespace things of its own.
func (w *world) furnish(ctx context.Context, t *testing.T, namespace string) things {
	t.Helper()
	ctx = as(ctx, namespace)
	lane := namespace + "-lane"
	own := things{worker: namespace + "-worker", instance: namespace + "-instance", lane: lane, namespace: namespace}
	submit := func(s flowfabric.Submission) flowfabric.ID {
		s.Kind, s.Lane, s.Input = "k", lane, flowfabric.JSON("secret of "+namespace)
		return must[flowfabric.SubmitResult](t)(w.Submit(ctx, s)).ID
	}
	claim := func() *flowfabric.Claimed {
		answer := must[flowfabric.ClaimAnswer](t)(w.Work().Claim(ctx, flowfabric.ClaimRequest{
			WorkerID: own.worker, InstanceID: own.instance, Lanes: []string{lane}, Wait: patience, LeaseTTL: time.Hour,
		}))
		return answer.Tasks[0]
	}
	must[flowfabric.Registered](t)(w.Work().Register(ctx, flowfabric.Registration{
		WorkerID: own.worker, InstanceID: own.instance, Lanes: []string{lane}, LivenessTTL: time.Hour,
	}))
	do := func(item flowfabric.WorkItem) {
		if answer := must[[]flowfabric.WorkAnswer](t)(w.Work().Do(ctx, item))[0]; answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
	own.done = submit(flowfabric.Submission{})
	task := claim()
	do(flowfabric.WorkItem{Op: flowfabric.OpStep, ID: task.ID, Lease: task.Lease, Step: "s", Result: flowfabric.JSON(1)})
	do(flowfabric.WorkItem{Op: flowfabric.OpComplete, ID: task.ID, Lease: task.Lease, Result: flowfabric.JSON("result")})
	own.waiting = submit(flowfabric.Submission{})
	own.waitpoint, own.link = w.suspend(ctx, t, claim())
	own.running = submit(flowfabric.Submission{})
	own.lease = claim().Lease
	own.ready = submit(flowfabric.Submission{SubmitOptions: flowfabric.SubmitOptions{IdempotencyKey: "the-key"}})
	own.job = must[*flowfabric.BulkJob](t)(w.Operate().Bulk(ctx, flowfabric.BulkRequest{Action: flowfabric.BulkTag, All: true, Tags: map[string]*string{"t": new(string)}})).ID
	must[*flowfabric.BulkJob](t)(w.Operate().WaitBulk(ctx, own.job))
	own.key = must[*flowfabric.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, flowfabric.APIKeySettings{
		Name: "key", Roles: []string{"read"}, Namespaces: []string{namespace},
	})).ID
	must[*flowfabric.Namespace](t)(w.Admin().Namespaces().Put(ctx, namespace, flowfabric.NamespaceSettings{Description: namespace}))
	return own
}

// suspend lets claimed work wait for an approval, with a link for somebody and a signal that is not enough.
func (w *world) suspend(ctx context.Context, t *testing.T, task *flowfabric.Claimed) (waitpoint, link string) {
	t.Helper()
	until := flowfabric.CountOf(3, flowfabric.DistinctSources, "go")
	answer := must[[]flowfabric.WorkAnswer](t)(w.Work().Do(ctx, flowfabric.WorkItem{Op: flowfabric.OpSuspend, ID: task.ID, Lease: task.Lease, Suspension: &flowfabric.Suspension{
		Waitpoints: []flowfabric.Binding{flowfabric.Fresh("go")}, Until: until, ReasonCode: flowfabric.WaitingForApproval,
	}}))[0]
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	at := answer.Waitpoints[0]
	made := must[flowfabric.ApprovalLink](t)(w.Waitpoints().NewLink(ctx, at.ID, flowfabric.LinkOptions{Approver: "ann"}))
	must[flowfabric.SignalReceipt](t)(w.Signal(ctx, flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: "x"}))
	return at.ID, made.ID
}

// badToken opens nothing.
func badToken() flowfabric.Token { return flowfabric.TokenOf("k:" + strings.Repeat("0", 64)) }

// shareAmong makes what belongs to several namespaces: an instance and a job.
func (w *world) shareAmong(ctx context.Context, t *testing.T, namespaces ...string) {
	t.Helper()
	ctx = principal.With(ctx, principal.Principal{Name: "platform", Namespaces: namespaces, Operator: true})
	must[flowfabric.Registered](t)(w.Work().Register(ctx, flowfabric.Registration{WorkerID: "shared", InstanceID: "shared", Lanes: []string{"shared"}}))
	job := must[*flowfabric.BulkJob](t)(w.Operate().Bulk(ctx, flowfabric.BulkRequest{Action: flowfabric.BulkHold, Filter: flowfabric.Filter{Kind: []string{"none"}}}))
	must[*flowfabric.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
}

// all gathers a list.
func all[T any](list iter.Seq2[T, error]) ([]T, error) {
	var items []T
	for item, err := range list {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// tried is what a call answered, in a form that does not depend on when it was made and whose things it named.
type tried map[string]string

// names that differ between two tries without a meaning.
var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	uuids   = regexp.MustCompile(`(\{fp:\d+\}:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	places  = regexp.MustCompile(`"(next_cursor|next|cursor|as_of)":"[^"]*",?`)
	rates   = regexp.MustCompile(`"rates":\{[^}]*\}[^}]*\}[^}]*\}\},?`)
	spans   = regexp.MustCompile(`"(clock_skew_ms|revision)":-?\d+`)
	secrets = regexp.MustCompile(`ffk_\w+|"key_id":"\w+"|"hash":"\w+"`)
)

func (x things) plain(text string) string {
	for _, part := range []struct{ name, value string }{
		{"<worker>", x.worker}, {"<instance>", x.instance}, {"<lane>", x.lane}, {"<key>", x.key}, {"<namespace>", `"` + x.namespace + `"`},
	} {
		text = strings.ReplaceAll(text, part.value, part.name)
	}
	for name, pattern := range map[string]*regexp.Regexp{"<uuid>": uuids, "<at>": moments, "": places, "<rates>": rates, "<n>": spans, "<secret>": secrets} {
		text = pattern.ReplaceAllString(text, name)
	}
	return text
}

func (r tried) note(t *testing.T, x things, name string, answer any, err error) {
	t.Helper()
	text, problem := json.Marshal(answer)
	if problem != nil {
		t.Fatalf("%s: %v", name, problem)
	}
	r[name] = x.plain(string(text))
	if err != nil {
		r[name] += " " + flowfabric.CodeOf(err) + " " + x.plain(err.Error())
	}
}

// tryAll calls every method with somebody's things.
func (w *world) tryAll(ctx context.Context, t *testing.T, x things) tried {
	t.Helper()
	answers := tried{}
	for group, methods := range map[string]map[string]func() (any, error){
		"Client": w.tryClient(ctx, x), "Executions": w.tryExecutions(ctx, x), "Operate": w.tryOperate(ctx, x), "Events": w.tryEvents(ctx),
		"Lanes": w.tryLanes(ctx, x), "Workers": w.tryWorkers(ctx, x), "Work": w.tryWork(ctx, x), "Admin": w.tryAdmin(ctx, x),
		"APIKeys": w.tryKeys(ctx, x), "Namespaces": w.tryNamespaces(ctx, x), "Waitpoints": w.tryWaitpoints(ctx, x),
	} {
		for name, call := range methods {
			answer, err := call()
			answers.note(t, x, group+"."+name, answer, err)
		}
	}
	return answers
}

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
	byLane := flowfabric.ListOptions{Filter: flowfabric.Filter{Lane: []string{x.lane}}}
	return map[string]func() (any, error){
		"List":            func() (any, error) { return all(e.List(ctx)) },
		"Page":            func() (any, error) { return e.Page(ctx, byLane) },
		"Count":           func() (any, error) { return e.Count(ctx, flowfabric.Filter{}, flowfabric.CountOptions{By: "lane"}) },
		"Input":           func() (any, error) { return e.Input(ctx, x.ready) },
		"Result":          func() (any, error) { return e.Result(ctx, x.done) },
		"Attempts":        func() (any, error) { return e.Attempts(ctx, x.done) },
		"Attempt":         func() (any, error) { return e.Attempt(ctx, x.done, flowfabric.LatestAttempt) },
		"Leases":          func() (any, error) { return all(e.Leases(ctx, x.done)) },
		"LeasesPage":      func() (any, error) { return e.LeasesPage(ctx, x.done) },
		"Steps":           func() (any, error) { return e.Steps(ctx, x.done) },
		"Suspension":      func() (any, error) { return e.Suspension(ctx, x.waiting) },
		"Suspensions":     func() (any, error) { return all(e.Suspensions(ctx, x.waiting)) },
		"SuspensionsPage": func() (any, error) { return e.SuspensionsPage(ctx, x.waiting) },
		"Signals":         func() (any, error) { return all(e.Signals(ctx, x.waiting)) },
		"SignalsPage":     func() (any, error) { return e.SignalsPage(ctx, x.waiting) },
		"SetTags":         func() (any, error) { return e.SetTags(ctx, x.done, map[string]*string{"x": nil}) },
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
		"Approve":     func() (any, error) { return o.Approve(ctx, x.waiting, flowfabric.Approve{WaitpointID: x.waitpoint}) },
		"Retain": func() (any, error) {
			return o.Retain(ctx, x.done, flowfabric.RetainOptions{Action: flowfabric.Action{Reason: "r"}})
		},
		"EndRetain": func() (any, error) { return o.EndRetain(ctx, x.done) },
		"Delete":    func() (any, error) { return nil, o.Delete(ctx, x.done) },
		"Bulk": func() (any, error) {
			return o.Bulk(ctx, flowfabric.BulkRequest{Action: flowfabric.BulkCancel, All: true, DryRun: true})
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
		"List":       func() (any, error) { return all(p.List(ctx, flowfabric.WaitpointQuery{State: "all"})) },
		"Page":       func() (any, error) { return p.Page(ctx, flowfabric.WaitpointQuery{ExecutionID: x.waiting}) },
		"Get":        func() (any, error) { return p.Get(ctx, x.waitpoint) },
		"Token":      func() (any, error) { return p.Token(ctx, x.waiting, x.waitpoint) },
		"Reissue":    func() (any, error) { return p.Reissue(ctx, x.waitpoint) },
		"Close":      func() (any, error) { return p.Close(ctx, x.waitpoint) },
		"NewLink":    func() (any, error) { return p.NewLink(ctx, x.waitpoint, flowfabric.LinkOptions{Approver: "ben"}) },
		"Links":      func() (any, error) { return p.Links(ctx, x.waitpoint) },
		"LinkURL":    func() (any, error) { return p.LinkURL(ctx, x.link) },
		"RevokeLink": func() (any, error) { return nil, p.RevokeLink(ctx, x.link) },
		"OpenLink":   func() (any, error) { return p.OpenLink(ctx, x.link, badToken()) },
		"Decide": func() (any, error) {
			return p.Decide(ctx, x.link, badToken(), flowfabric.LinkDecision{Decision: "approve"})
		},
		"Suspended":     func() (any, error) { return all(p.Suspended(ctx)) },
		"SuspendedPage": func() (any, error) { return p.SuspendedPage(ctx, flowfabric.SuspendedQuery{Lane: x.lane}) },
		"Inbox":         func() (any, error) { return all(p.Inbox(ctx)) },
		"InboxPage":     func() (any, error) { return p.InboxPage(ctx, flowfabric.SuspendedQuery{Approver: "ann"}) },
	}
}

// tryEvents tells what the log shows besides the caller's own.
func (w *world) tryEvents(ctx context.Context) map[string]func() (any, error) {
	foreign := func(events []flowfabric.Event) []flowfabric.Event {
		return slices.DeleteFunc(events, func(e flowfabric.Event) bool { return e.Namespace == "tenant-a" })
	}
	from := flowfabric.ReadOptions{After: flowfabric.FromStart, Limit: 1000}
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
		"List":    func() (any, error) { return all(f.List(ctx, flowfabric.WorkerFilter{State: "all"})) },
		"Page":    func() (any, error) { return f.Page(ctx, flowfabric.WorkerFilter{Lane: x.lane, State: "all"}) },
		"Get":     func() (any, error) { return f.Get(ctx, x.instance) },
		"Leases":  func() (any, error) { return f.Leases(ctx, x.instance) },
		"Drain":   func() (any, error) { return nil, f.Drain(ctx, flowfabric.WorkerTarget{WorkerID: x.worker}) },
		"Undrain": func() (any, error) { return nil, f.Undrain(ctx, flowfabric.WorkerTarget{InstanceID: x.instance}) },
		"MarkDead": func() (any, error) {
			return nil, f.MarkDead(ctx, x.instance, flowfabric.DeadOptions{Reason: "r"})
		},
	}
}

func (w *world) tryWork(ctx context.Context, x things) map[string]func() (any, error) {
	target := flowfabric.TargetedClaim{WorkerID: "tenant-a-worker", InstanceID: "tenant-a-instance"}
	return map[string]func() (any, error){
		"Heartbeat": func() (any, error) {
			beat, err := w.Work().Heartbeat(ctx, x.instance, []flowfabric.Lease{x.lease})
			return fmt.Sprint(beat.Registered, beat.Drain, flowfabric.CodeOf(beat.Leases[0].Err)), err
		},
		"Claim": func() (any, error) {
			answer, err := w.Work().Claim(ctx, flowfabric.ClaimRequest{WorkerID: "tenant-a-worker", InstanceID: "tenant-a-instance", Lanes: []string{x.lane}})
			return len(answer.Tasks), err
		},
		"ClaimResumed": func() (any, error) { return w.Work().ClaimResumed(ctx, x.ready, target) },
		"Reclaim":      func() (any, error) { return w.Work().Reclaim(ctx, x.running, target) },
		"Do": func() (any, error) {
			var items []flowfabric.WorkItem
			for _, op := range []flowfabric.Op{
				flowfabric.OpRenew, flowfabric.OpProgress, flowfabric.OpComplete, flowfabric.OpFail, flowfabric.OpRelease, flowfabric.OpDelay, flowfabric.OpStep, flowfabric.OpCancel,
				flowfabric.OpSuspend, flowfabric.OpWaitpoint,
			} {
				items = append(items, flowfabric.WorkItem{
					Op: op, ID: x.running, Lease: x.lease, Step: "s", Until: time.Now().Add(time.Hour),
					Suspension: &flowfabric.Suspension{Until: flowfabric.OperatorOnly()}, Waitpoint: &flowfabric.NewWaitpoint{Key: "k"},
				})
			}
			items = append(items, flowfabric.WorkItem{Op: flowfabric.OpComplete, ID: x.running, Override: true})
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
	foreign := func(rows []flowfabric.AuditRow) []flowfabric.AuditRow {
		return slices.DeleteFunc(rows, func(r flowfabric.AuditRow) bool { return r.Namespace == "tenant-a" })
	}
	return map[string]func() (any, error){
		"Audit": func() (any, error) {
			rows, err := all(w.Admin().Audit(ctx))
			return foreign(rows), err
		},
		"AuditPage": func() (any, error) {
			page, err := w.Admin().AuditPage(ctx, flowfabric.AuditFilter{Namespace: x.namespace})
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
			return k.Create(ctx, flowfabric.APIKeySettings{Name: "n", Roles: []string{"read"}, Namespaces: []string{x.namespace}})
		},
		"Change": func() (any, error) { return k.Change(ctx, x.key, flowfabric.APIKeyChange{MaxInFlight: new(int)}) },
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
		"Put":    func() (any, error) { return n.Put(ctx, x.namespace, flowfabric.NamespaceSettings{}) },
		"Delete": func() (any, error) { return nil, n.Delete(ctx, x.namespace) },
	}
}

// notTried are methods that name nothing of a tenant's, with the reason.
var notTried = map[string]string{
	"Client.Close":         "it concerns the process",
	"Lanes.Put":            "lanes are shared by all namespaces: who may set one up is the server's to decide (U121)",
	"Work.Register":        "instance ids are one space: the id of another tenant's instance is instance_id_taken",
	"Admin.Info":           "it tells of the store alone",
	"Admin.Integrity":      "it concerns the whole store: the server asks for a key for all namespaces (U113)",
	"Admin.Doctor":         "it concerns the whole store: the server asks for a key for all namespaces (U113)",
	"Admin.Settings":       "they are those of the process",
	"Admin.Backup":         "it concerns the whole store: the server asks for a key for all namespaces (U113)",
	"Admin.RecordRefusal":  "it is the server's",
	"APIKeys.Authenticate": "it is what finds the principal",
}

// untried names the methods of the interfaces that were not called.
func untried(answers tried) []string {
	var missing []string
	for name, group := range map[string]reflect.Type{
		"Client": reflect.TypeFor[flowfabric.Client](), "Executions": reflect.TypeFor[flowfabric.Executions](), "Operate": reflect.TypeFor[flowfabric.Operate](),
		"Events": reflect.TypeFor[flowfabric.Events](), "Lanes": reflect.TypeFor[flowfabric.Lanes](), "Workers": reflect.TypeFor[flowfabric.Workers](),
		"Work": reflect.TypeFor[flowfabric.Work](), "Admin": reflect.TypeFor[flowfabric.Admin](), "APIKeys": reflect.TypeFor[flowfabric.APIKeys](),
		"Namespaces": reflect.TypeFor[flowfabric.Namespaces](), "Waitpoints": reflect.TypeFor[flowfabric.Waitpoints](),
	} {
		for i := range group.NumMethod() {
			m := group.Method(i)
			if _, done := answers[name+"."+m.Name]; m.IsExported() && m.Type.NumIn() > 0 && !done && notTried[name+"."+m.Name] == "" {
				missing = append(missing, name+"."+m.Name)
			}
		}
	}
	return missing
}

func TestI14_nothing_of_another_namespace_is_seen_or_changed_through_any_method(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.furnish(ctx, t, "tenant-a")
		a := as(ctx, "tenant-a")
		w.tryAll(a, t, nobodys()) // what the calls make of a's own is there from now on
		before := w.tryAll(a, t, nobodys())
		theirs := w.furnish(ctx, t, "tenant-b")
		w.shareAmong(ctx, t, "tenant-b", "tenant-c")
		own := w.snapshot(as(ctx, "tenant-b"), t, theirs)
		if diff := cmp.Diff(before, w.tryAll(a, t, theirs)); diff != "" {
			t.Errorf("things of b answer otherwise than things that do not exist (-nothing +of b):\n%s", diff)
		}
		if diff := cmp.Diff(own, w.snapshot(as(ctx, "tenant-b"), t, theirs)); diff != "" {
			t.Errorf("things of b were changed:\n%s", diff)
		}
		if missing := untried(before); len(missing) > 0 {
			t.Errorf("these methods were not tried: %v", missing)
		}
	})
}

// snapshot is what a tenant sees of its things.
func (w *world) snapshot(ctx context.Context, t *testing.T, x things) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for name, call := range map[string]func() (any, error){
		"ready": func() (any, error) { return w.Get(ctx, x.ready) }, "running": func() (any, error) { return w.Get(ctx, x.running) },
		"done": func() (any, error) { return w.Get(ctx, x.done) }, "job": func() (any, error) { return w.Operate().BulkStatus(ctx, x.job) },
		"worker": func() (any, error) { return w.Workers().Get(ctx, x.instance) }, "key": func() (any, error) { return w.Admin().APIKeys().Get(ctx, x.key) },
		"namespace": func() (any, error) { return w.Admin().Namespaces().Get(ctx, x.namespace) },
		"audit":     func() (any, error) { return all(w.Admin().Audit(ctx)) },
		"waiting":   func() (any, error) { return w.Executions().Suspension(ctx, x.waiting) },
		"waitpoint": func() (any, error) { return w.Waitpoints().Get(ctx, x.waitpoint) },
		"links":     func() (any, error) { return w.Waitpoints().Links(ctx, x.waitpoint) },
	} {
		answer, err := call()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = string(text)
	}
	return seen
}

func TestW5_a_call_is_made_for_the_principal_of_its_context(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		several := principal.Principal{Name: "ci", Namespaces: []string{"a", "b"}, RequestID: "r-7"}
		_, err := w.Submit(principal.With(ctx, several), flowfabric.Submission{Kind: "k"})
		if flowfabric.CodeOf(err) != "namespace_required" {
			t.Errorf("without a choice: %v", err)
		}
		several.Namespace = "c"
		_, err = w.Submit(principal.With(ctx, several), flowfabric.Submission{Kind: "k"})
		if flowfabric.CodeOf(err) != "namespace_forbidden" {
			t.Errorf("another namespace: %v", err)
		}
		several.Namespace = "b"
		made := principal.With(ctx, several)
		id := must[flowfabric.SubmitResult](t)(w.Submit(made, flowfabric.Submission{Kind: "k"})).ID
		x := must[*flowfabric.Execution](t)(w.Get(made, id))
		if x.Namespace != "b" || x.Creator != "ci" {
			t.Errorf("%s by %s", x.Namespace, x.Creator)
		}
		must[*flowfabric.Execution](t)(w.Operate().Hold(made, id))
		if _, err := w.Get(ctx, id); flowfabric.CodeOf(err) != "execution_not_found" { // the client itself is of the namespace default
			t.Errorf("the client's own view: %v", err)
		}
		page := must[flowfabric.EventPage](t)(w.Events().Read(made, flowfabric.ReadOptions{After: flowfabric.FromStart}))
		for _, event := range page.Events {
			if event.ActorType != "client" || event.ActorID != "ci" || event.RequestID != "r-7" {
				t.Errorf("%s by %s %s in %s", event.Kind, event.ActorType, event.ActorID, event.RequestID)
			}
		}
		if rows := must[[]flowfabric.AuditRow](t)(all(w.Admin().Audit(ctx))); len(rows) != 0 {
			t.Errorf("a caller without the role operate is in the audit log: %+v", rows)
		}
		several.Operator = true
		must[*flowfabric.Execution](t)(w.Operate().ReleaseHold(principal.With(ctx, several), id))
		rows := must[[]flowfabric.AuditRow](t)(all(w.Admin().Audit(ctx)))
		if len(rows) != 1 || rows[0].Action != "release_hold" || rows[0].Principal != "ci" || rows[0].RequestID != "r-7" || rows[0].Namespace != "b" {
			t.Errorf("%+v", rows)
		}
	})
}

func TestU13_the_key_of_a_request_makes_its_commands_repeatable(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		request := principal.With(ctx, principal.Principal{Name: "ci", Namespaces: []string{"a"}, RequestKey: "k-1", Operator: true})
		first := must[flowfabric.SubmitResult](t)(w.Submit(request, flowfabric.Submission{Kind: "k"}))
		again := must[flowfabric.SubmitResult](t)(w.Submit(request, flowfabric.Submission{Kind: "k"}))
		if first != again || first.Duplicate {
			t.Errorf("%+v, again %+v", first, again)
		}
		if _, err := w.Submit(request, flowfabric.Submission{Kind: "other"}); flowfabric.CodeOf(err) != "idempotency_conflict" {
			t.Errorf("another body: %v", err)
		}
		many := []flowfabric.Submission{{Kind: "k"}, {Kind: "k"}}
		one, two := must[[]flowfabric.SubmitResult](t)(w.SubmitMany(request, many)), must[[]flowfabric.SubmitResult](t)(w.SubmitMany(request, many))
		if diff := cmp.Diff(one, two); diff != "" || one[0].ID == one[1].ID {
			t.Errorf("a batch again: %s", diff)
		}
		must[*flowfabric.Execution](t)(w.Operate().Hold(request, first.ID, flowfabric.Action{Reason: "x"}))
		if _, err := w.Operate().Hold(request, first.ID, flowfabric.Action{Reason: "y"}); flowfabric.CodeOf(err) != "idempotency_conflict" {
			t.Errorf("another reason: %v", err)
		}
		s := flowfabric.APIKeySettings{Name: "n", Roles: []string{"read"}, Namespaces: []string{"a"}}
		made := must[*flowfabric.NewAPIKey](t)(w.Admin().APIKeys().Create(request, s))
		repeat := must[*flowfabric.NewAPIKey](t)(w.Admin().APIKeys().Create(request, s))
		if made.Secret == "" || repeat.Secret != "" || repeat.ID != made.ID {
			t.Errorf("the secret is shown twice, or not once")
		}
	})
}
