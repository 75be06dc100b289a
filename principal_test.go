package flowfabric_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"
	"github.com/flowfabric/flowfabric/workapi"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// tenant is the world as an operator of one namespace uses it.
func (w *world) tenant(namespace string) *world {
	return w.as(service.Caller{
		Name: "admin-of-" + namespace, Namespaces: []string{namespace}, Operator: true, RequestID: "r-" + namespace, Address: "192.0.2.1",
	})
}

// things are what one tenant has.
type things struct {
	ready, running, done                        flowfabric.ID
	lease                                       api.Lease
	worker, instance, job, lane, key, namespace string
	waiting                                     flowfabric.ID // suspended, for an approval
	waitpoint, link                             string
	budget                                      string
	grant                                       api.GrantKey
	flow                                        flowfabric.ID
	edge                                        string
}

// absentThings are things that do not exist.
func absentThings() things {
	uuid := func(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012d", n) }
	lease := api.Lease{ExecutionID: flowfabric.ID(uuid(2)), ID: uuid(5), Epoch: 1, AttemptID: uuid(6)}
	return things{
		ready: flowfabric.ID(uuid(1)), running: flowfabric.ID(uuid(2)), done: flowfabric.ID(uuid(3)), lease: lease,
		worker: "no-worker", instance: "no-instance", job: uuid(4), lane: "no-lane", key: "aaaaaaaaaaaa", namespace: "no-namespace",
		waiting: flowfabric.ID(uuid(7)), waitpoint: uuid(8), link: uuid(9), budget: uuid(10), flow: flowfabric.ID(uuid(12)), edge: uuid(13),
	}
}

// absentGrant is a key like the given one, for an execution that does not exist.
func absentGrant(key api.GrantKey) api.GrantKey {
	return api.GrantKeyOf(uuids.ReplaceAllString(key.Reveal(), "{fp:1}:01890000-0000-7000-8000-000000000011"))
}

// furnish gives a namespace things of its own.
func (w *world) furnish(ctx context.Context, t *testing.T, namespace string) things {
	t.Helper()
	w = w.tenant(namespace)
	lane := namespace + "-lane"
	own := things{worker: namespace + "-worker", instance: namespace + "-instance", lane: lane, namespace: namespace}
	submit := func(s flowfabric.Submission) flowfabric.ID {
		s.Kind, s.Lane, s.Input = "k", lane, flowfabric.JSON("secret of "+namespace)
		return must[flowfabric.SubmitResult](t)(w.Submit(ctx, s)).ID
	}
	claim := func() *api.Claimed {
		answer := must[api.ClaimAnswer](t)(w.Work().Claim(ctx, api.ClaimRequest{
			WorkerID: own.worker, InstanceID: own.instance, Lanes: []string{lane}, Wait: patience, LeaseTTL: time.Hour,
		}))
		return answer.Tasks[0]
	}
	must[api.RegisterResult](t)(w.Work().Register(ctx, api.Registration{
		WorkerID: own.worker, InstanceID: own.instance, Lanes: []string{lane}, LivenessTTL: time.Hour,
	}))
	do := func(item api.WorkItem) {
		if answer := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, item))[0]; answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
	own.done = submit(flowfabric.Submission{})
	task := claim()
	do(api.WorkItem{Op: api.OpStep, ID: task.ID, Lease: task.Lease, Step: "s", Result: flowfabric.JSON(1)})
	do(api.WorkItem{Op: api.OpComplete, ID: task.ID, Lease: task.Lease, Result: flowfabric.JSON("result")})
	own.waiting = submit(flowfabric.Submission{})
	own.waitpoint, own.link = w.suspend(ctx, t, claim())
	own.running = submit(flowfabric.Submission{})
	own.lease = claim().Lease
	own.ready = submit(flowfabric.Submission{SubmitOptions: flowfabric.SubmitOptions{IdempotencyKey: "the-key"}})
	promised := submit(flowfabric.Submission{})
	own.grant = must[[]api.Grant](t)(w.Work().Grant(ctx, api.GrantRequest{
		WorkerID: own.worker, InstanceID: own.instance, ExecutionID: promised, GrantTTL: time.Minute,
	}))[0].Key
	late := flowfabric.SubmitOptions{Lane: lane, Delay: time.Hour}
	own.flow = must[*flowfabric.FlowRun](t)(w.Flows().Submit(ctx, flowfabric.Flow{Kind: "k", Unsealed: true, Nodes: []flowfabric.Node{
		{Name: "a", Kind: "k", SubmitOptions: late}, flowfabric.Node{Name: "b", Kind: "k", SubmitOptions: late}.After("a"),
	}})).ID
	own.edge = must[flowfabric.Page[api.EdgeView]](t)(w.Flows().EdgesPage(ctx, own.flow)).Items[0].ID
	own.budget = must[*api.CreatedBudget](t)(w.Budgets().Create(ctx, api.Budget{
		Name: "month", Dimensions: map[string]api.BudgetLimits{"calls": {Hard: 10}},
	})).ID
	must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, own.budget, api.Charge{Usage: flowfabric.Usage{Amounts: map[string]int64{"calls": 3}}, ExecutionID: own.done}))
	own.job = must[*api.BulkJob](t)(w.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkTag, All: true, Tags: map[string]*string{"t": new(string)}})).ID
	must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, own.job))
	own.key = must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "key", Roles: []string{"read"}, Namespaces: []string{namespace},
	})).ID
	must[*api.Namespace](t)(w.Admin().Namespaces().Put(ctx, namespace, api.NamespaceSettings{Description: namespace}))
	return own
}

// suspend lets claimed work wait for an approval, with a link for somebody and a signal that is not enough.
func (w *world) suspend(ctx context.Context, t *testing.T, task *api.Claimed) (waitpoint, link string) {
	t.Helper()
	until := flowfabric.CountOf(3, flowfabric.DistinctSources, "go")
	answer := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, api.WorkItem{Op: api.OpSuspend, ID: task.ID, Lease: task.Lease, Suspension: &flowfabric.Suspension{
		Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("go")}, Until: until, ReasonCode: flowfabric.WaitingForApproval,
	}}))[0]
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	at := answer.Waitpoints[0]
	made := must[flowfabric.ApprovalLink](t)(w.Waitpoints().NewLink(ctx, at.ID, ops.LinkOptions{Approver: "ann"}))
	must[api.SignalReceipt](t)(w.Signal(ctx, flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: "x"}))
	return at.ID, made.ID
}

// badToken opens nothing.
func badToken() flowfabric.Token { return flowfabric.TokenOf("k:" + strings.Repeat("0", 64)) }

// shareAmong makes what belongs to several namespaces: an instance and a job.
func (w *world) shareAmong(ctx context.Context, t *testing.T, namespaces ...string) {
	t.Helper()
	w = w.as(service.Caller{Name: "platform", Namespaces: namespaces, Operator: true})
	must[api.RegisterResult](t)(w.Work().Register(ctx, api.Registration{WorkerID: "shared", InstanceID: "shared", Lanes: []string{"shared"}}))
	job := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkHold, Filter: ops.Filter{Kind: []string{"none"}}}))
	must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
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
		"Quotas": w.tryQuotas(ctx), "Lanes": w.tryLanes(ctx, x), "Workers": w.tryWorkers(ctx, x), "Work": w.tryWork(ctx, x), "Admin": w.tryAdmin(ctx, x),
		"APIKeys": w.tryKeys(ctx, x), "Namespaces": w.tryNamespaces(ctx, x), "Waitpoints": w.tryWaitpoints(ctx, x),
		"Budgets": w.tryBudgets(ctx, x), "Flows": w.tryFlows(ctx, x),
	} {
		for name, call := range methods {
			answer, err := call()
			answers.note(t, x, group+"."+name, answer, err)
		}
	}
	return answers
}

// notTried are methods that name nothing of a tenant's, with the reason.
var notTried = map[string]string{
	"Client.Close":               "it concerns the process",
	"Client.Do":                  "the methods of the groups, which are tried, are made of it",
	"Quotas.Put":                 "quotas are shared by all namespaces: who may set one up is the server's to decide (U121)",
	"Quotas.Delete":              "as Quotas.Put",
	"Lanes.Put":                  "lanes are shared by all namespaces: who may set one up is the server's to decide (U121)",
	"Work.Register":              "instance ids are one space: the id of another tenant's instance is instance_id_taken",
	"Admin.Info":                 "it tells of the store alone",
	"Admin.Integrity":            "it concerns the whole store: the server asks for a key for all namespaces (U113)",
	"Admin.Doctor":               "it concerns the whole store: the server asks for a key for all namespaces (U113)",
	"Admin.AcknowledgeRollbacks": "it concerns the whole store: the server asks for a key for all namespaces (R5)",
	"Admin.Settings":             "they are those of the process",
	"Admin.Backup":               "it concerns the whole store: the server asks for a key for all namespaces (U113)",
}

// untried names the methods of the interfaces that were not called.
func untried(answers tried) []string {
	var missing []string
	for name, group := range map[string]reflect.Type{
		"Client": reflect.TypeFor[*flowfabric.Client](), "Executions": reflect.TypeFor[ops.Executions](), "Operate": reflect.TypeFor[ops.Operate](),
		"Events": reflect.TypeFor[ops.Events](), "Lanes": reflect.TypeFor[ops.Lanes](), "Quotas": reflect.TypeFor[ops.Quotas](), "Workers": reflect.TypeFor[ops.Workers](),
		"Work": reflect.TypeFor[workapi.Work](), "Admin": reflect.TypeFor[ops.Admin](), "APIKeys": reflect.TypeFor[ops.APIKeys](),
		"Namespaces": reflect.TypeFor[ops.Namespaces](), "Waitpoints": reflect.TypeFor[ops.Waitpoints](), "Budgets": reflect.TypeFor[ops.Budgets](),
		"Flows": reflect.TypeFor[flowfabric.Flows](),
	} {
		receivers := 1 // of a struct it is an argument
		if group.Kind() == reflect.Interface {
			receivers = 0
		}
		for i := range group.NumMethod() {
			m := group.Method(i)
			if _, done := answers[name+"."+m.Name]; m.IsExported() && m.Type.NumIn() > receivers && !done && notTried[name+"."+m.Name] == "" {
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
		must[*api.Quota](t)(w.Quotas().Put(ctx, "shared", api.QuotaSettings{ConcurrencyLimit: 1000}))
		nothing := absentThings()
		some := w.furnish(ctx, t, "tenant-a")
		nothing.grant = absentGrant(some.grant)
		nothing.lease.ID, nothing.lease.AttemptID = some.lease.ID, some.lease.AttemptID // one that no store has given out is no handle at all (W6)
		a, b := w.tenant("tenant-a"), w.tenant("tenant-b")
		a.tryAll(ctx, t, nothing) // what the calls make of a's own is there from now on
		before := a.tryAll(ctx, t, nothing)
		theirs := w.furnish(ctx, t, "tenant-b")
		w.shareAmong(ctx, t, "tenant-b", "tenant-c")
		own := b.snapshot(ctx, t, theirs)
		if diff := cmp.Diff(before, a.tryAll(ctx, t, theirs)); diff != "" {
			t.Errorf("things of b answer otherwise than things that do not exist (-nothing +of b):\n%s", diff)
		}
		if diff := cmp.Diff(own, b.snapshot(ctx, t, theirs)); diff != "" {
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
		"budget":    func() (any, error) { return w.Budgets().Get(ctx, x.budget) },
		"flow":      func() (any, error) { return w.Flows().Graph(ctx, x.flow) },
		"grant":     func() (any, error) { return nil, w.Work().VerifyGrant(ctx, x.grant) },
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

func TestW5_a_call_is_made_for_the_caller_of_its_client(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		several := service.Caller{Name: "ci", Namespaces: []string{"a", "b"}, RequestID: "r-7"}
		_, err := w.as(several).Submit(ctx, flowfabric.Submission{Kind: "k"})
		if flowfabric.CodeOf(err) != "namespace_required" {
			t.Errorf("without a choice: %v", err)
		}
		several.Namespace = "c"
		_, err = w.as(several).Submit(ctx, flowfabric.Submission{Kind: "k"})
		if flowfabric.CodeOf(err) != "namespace_forbidden" {
			t.Errorf("another namespace: %v", err)
		}
		several.Namespace = "b"
		made := w.as(several)
		id := must[flowfabric.SubmitResult](t)(made.Submit(ctx, flowfabric.Submission{Kind: "k"})).ID
		x := must[*flowfabric.Execution](t)(made.Get(ctx, id))
		if x.Namespace != "b" || x.Creator != "ci" {
			t.Errorf("%s by %s", x.Namespace, x.Creator)
		}
		must[*flowfabric.Execution](t)(made.Operate().Hold(ctx, id))
		if _, err := w.Get(ctx, id); flowfabric.CodeOf(err) != "execution_not_found" { // the client itself is of the namespace default
			t.Errorf("the client's own view: %v", err)
		}
		page := must[api.EventPage](t)(made.Events().Read(ctx, ops.ReadOptions{After: api.FromStart}))
		for _, event := range page.Events {
			if event.Actor.Type != "client" || event.Actor.ID != "ci" || event.RequestID != "r-7" {
				t.Errorf("%s by %s %s in %s", event.Kind, event.Actor.Type, event.Actor.ID, event.RequestID)
			}
		}
		if rows := must[[]api.AuditRow](t)(all(w.Admin().Audit(ctx))); len(rows) != 0 {
			t.Errorf("a caller without the role operate is in the audit log: %+v", rows)
		}
		several.Operator = true
		must[*flowfabric.Execution](t)(w.as(several).Operate().ReleaseHold(ctx, id))
		rows := must[[]api.AuditRow](t)(all(w.Admin().Audit(ctx)))
		if len(rows) != 1 || rows[0].Action != "release_hold" || rows[0].Principal != "ci" || rows[0].RequestID != "r-7" || rows[0].Namespace != "b" {
			t.Errorf("%+v", rows)
		}
	})
}

func TestU13_the_key_of_a_request_makes_its_commands_repeatable(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w = w.as(service.Caller{Name: "ci", Namespaces: []string{"a"}, RequestKey: "k-1", Operator: true})
		submit := func(kind string) (*flowfabric.SubmitResult, error) { // as a server does: the client itself would mint an id
			return transport.Call(ctx, w.Connection(), wire.SubmitBriefly, &wire.SubmitRequest{Body: flowfabric.Submission{Kind: kind}}, transport.Options{})
		}
		first, again := must[*flowfabric.SubmitResult](t)(submit("k")), must[*flowfabric.SubmitResult](t)(submit("k"))
		if *first != *again || first.Duplicate {
			t.Errorf("%+v, again %+v", first, again)
		}
		if _, err := submit("other"); flowfabric.CodeOf(err) != "idempotency_conflict" {
			t.Errorf("another body: %v", err)
		}
		batch := &wire.SubmitManyRequest{}
		batch.Body.Items = []flowfabric.Submission{{Kind: "k"}, {Kind: "k"}}
		one := *must[*wire.SubmitResults](t)(transport.Call(ctx, w.Connection(), wire.SubmitMany, batch, transport.Options{}))
		two := *must[*wire.SubmitResults](t)(transport.Call(ctx, w.Connection(), wire.SubmitMany, batch, transport.Options{}))
		if diff := cmp.Diff(one, two); diff != "" || one[0].ID == one[1].ID {
			t.Errorf("a batch again: %s", diff)
		}
		must[*flowfabric.Execution](t)(w.Operate().Hold(ctx, first.ID, ops.Action{Reason: "x"}))
		if _, err := w.Operate().Hold(ctx, first.ID, ops.Action{Reason: "y"}); flowfabric.CodeOf(err) != "idempotency_conflict" {
			t.Errorf("another reason: %v", err)
		}
		s := api.APIKeySettings{Name: "n", Roles: []string{"read"}, Namespaces: []string{"a"}}
		made := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, s))
		repeat := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, s))
		if made.Secret == "" || repeat.Secret != "" || repeat.ID != made.ID {
			t.Errorf("the secret is shown twice, or not once")
		}
	})
}
