package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// specified are the Role columns of section 2 as they stand in the specification, for the routes that exist: who may call what,
// in its letters (R read, S submit, W work, O operate, A admin, P token, - open, any).
var specified = []struct{ rule, routes, roles string }{
	{"U32", "POST /v1/executions", "S"},
	{"U33", "POST /v1/executions/bulk", "S"},
	{"U34", "GET /v1/executions", "R"},
	{"U35", "GET /v1/executions/count", "R"},
	{"U36", "GET /v1/executions/export", "R"},
	{"U37", "GET /v1/executions/{id}", "R S W"},
	{"U38", "GET /v1/executions/{id}/state", "R S W"},
	{"U39", "GET /v1/executions/{id}/input", "R S W"},
	{"U39", "GET /v1/executions/{id}/inputs/{name}", "R S W"},
	{"U40", "GET /v1/executions/{id}/result", "R S W"},
	{"U41", "GET /v1/executions/{id}/attempts, GET /v1/executions/{id}/attempts/{n}, GET /v1/executions/{id}/leases", "R"},
	{"U42", "GET /v1/executions/{id}/steps", "R S W"},
	{"U42", "GET /v1/executions/{id}/waitpoints, GET /v1/executions/{id}/signals, GET /v1/executions/{id}/suspensions, GET /v1/executions/{id}/suspension", "R S W"},
	{"U42", "GET /v1/executions/{id}/usage, GET /v1/executions/{id}/budgets, GET /v1/executions/{id}/children", "R S W"},
	{"U43", "GET /v1/executions/{id}/events", "R S"},
	{"U44", "GET /v1/executions/{id}/explain", "R S"},
	{"U45", "POST /v1/executions/{id}/cancel", "O S W"},
	{"U46", "POST /v1/executions/{id}/replay", "O S"},
	{"U47", "PUT /v1/executions/{id}/priority", "O"},
	{"U48", "POST /v1/executions/{id}/hold, DELETE /v1/executions/{id}/hold", "O"},
	{"U49", "POST /v1/executions/{id}/resume", "O"},
	{"U50", "POST /v1/executions/{id}/revoke", "O"},
	{"U51", "POST /v1/executions/{id}/claim", "O"},
	{"U52", "POST /v1/executions/{id}/approve", "O"},
	{"U53", "PATCH /v1/executions/{id}/tags", "O S"},
	{"U54", "PUT /v1/executions/{id}/retain, DELETE /v1/executions/{id}/retain", "A"},
	{"U55", "DELETE /v1/executions/{id}, DELETE /v1/flows/{id}", "A"},
	{"U57", "POST /v1/bulk", "O"},
	{"U58", "GET /v1/bulk, GET /v1/bulk/{id}, GET /v1/bulk/{id}/items", "R"},
	{"U58", "POST /v1/bulk/{id}/stop", "O"},
	{"U60", "POST /v1/workers", "W"},
	{"U61", "POST /v1/workers/{instance}/heartbeat", "W"},
	{"U62", "POST /v1/work/claim", "W"},
	{"U63", "POST /v1/executions/{id}/claim-resumed, POST /v1/executions/{id}/reclaim", "W O"},
	{"U64", "POST /v1/work/grants", "W O"},
	{"U65", "POST /v1/work/grants/claim, POST /v1/work/grants/verify, POST /v1/work/grants/return", "W"},
	{"U66", "POST /v1/executions/{id}/renew", "W"},
	{"U67", "POST /v1/executions/{id}/progress", "W"},
	{"U68", "POST /v1/executions/{id}/complete", "W O"},
	{"U69", "POST /v1/executions/{id}/fail", "W O"},
	{"U70", "POST /v1/executions/{id}/release, POST /v1/executions/{id}/delay", "W"},
	{"U71", "POST /v1/executions/{id}/suspend", "W"},
	{"U72", "POST /v1/executions/{id}/waitpoints", "W"},
	{"U73", "POST /v1/executions/{id}/frames", "W"},
	{"U74", "POST /v1/executions/{id}/usage", "W"},
	{"U75", "POST /v1/executions/{id}/spawn, POST /v1/executions/{id}/wait-children", "W"},
	{"U76", "PUT /v1/executions/{id}/steps/{name}", "W"},
	{"U77", "POST /v1/work/batch", "W"},
	{"U79", "GET /v1/waitpoints, GET /v1/waitpoints/{waitpoint}", "R"},
	{"U80", "GET /v1/executions/{id}/waitpoints/{waitpoint}/token, POST /v1/waitpoints/{waitpoint}/reissue", "O"},
	{"U81", "POST /v1/waitpoints/{waitpoint}/signals, POST /v1/executions/{id}/signals", "P"},
	{"U82", "POST /v1/callbacks/{waitpoint}/{token}", "P"},
	{"U83", "POST /v1/waitpoints/{waitpoint}/close", "W O"},
	{"U84", "POST /v1/waitpoints/{waitpoint}/links, GET /v1/waitpoints/{waitpoint}/links, DELETE /v1/links/{link}", "W O"},
	{"U84", "GET /v1/links/{link}/url", "O"},
	{"U85", "GET /v1/suspended, GET /v1/approvals", "R"},
	{"U86", "GET /approve/{link}/{token}, POST /approve/{link}/{token}", "P"},
	{"U89", "POST /v1/flows", "S"},
	{"U90", "POST /v1/flows/{id}/extend, POST /v1/flows/{id}/seal", "S"},
	{"U91", "GET /v1/flows, GET /v1/flows/{id}, GET /v1/flows/{id}/graph, GET /v1/flows/{id}/members, GET /v1/flows/{id}/edges", "R S"},
	{"U91", "GET /v1/flows/{id}/edges/{edge}, GET /v1/flows/{id}/usage, GET /v1/flows/{id}/events", "R S"},
	{"U92", "PUT /v1/flows/{id}/members/{name}/join, GET /v1/flows/{id}/members/{name}/join", "S"},
	{"U93", "POST /v1/flows/{id}/cancel", "O S"},
	{"U94", "PATCH /v1/flows/{id}/tags, PUT /v1/flows/{id}/tags", "O S"},
	{"U95", "POST /v1/budgets", "O"},
	{"U96", "GET /v1/budgets, GET /v1/budgets/{id}, GET /v1/budgets/{id}/epochs, GET /v1/budgets/{id}/spend", "R"},
	{"U97", "PATCH /v1/budgets/{id}, DELETE /v1/budgets/{id}, POST /v1/budgets/{id}/close, POST /v1/budgets/{id}/reopen, POST /v1/budgets/{id}/reset", "O"},
	{"U98", "POST /v1/budgets/{id}/charge, POST /v1/budgets/{id}/release", "W O"},
	{"U99", "GET /v1/quotas, GET /v1/quotas/{id}", "R"},
	{"U99", "PUT /v1/quotas/{id}, DELETE /v1/quotas/{id}", "O"},
	{"U100", "GET /v1/lanes, GET /v1/lanes/{lane}", "R"},
	{"U100", "PUT /v1/lanes/{lane}, POST /v1/lanes/{lane}/pause, POST /v1/lanes/{lane}/resume, POST /v1/lanes/{lane}/drain, POST /v1/lanes/{lane}/disable", "O"},
	{"U101", "GET /v1/namespaces, GET /v1/namespaces/{name}, PUT /v1/namespaces/{name}, DELETE /v1/namespaces/{name}", "A"},
	{"U102", "GET /v1/workers, GET /v1/workers/{instance}, GET /v1/workers/{instance}/leases", "R"},
	{"U103", "POST /v1/workers/{instance}/drain, POST /v1/workers/{instance}/undrain, POST /v1/workers/{instance}/dead, POST /v1/workers/drain, POST /v1/workers/undrain", "O W"},
	{"U104", "GET /v1/api-keys, POST /v1/api-keys, GET /v1/api-keys/{id}, PATCH /v1/api-keys/{id}, DELETE /v1/api-keys/{id}, POST /v1/api-keys/{id}/rotate", "A"},
	{"U105", "GET /v1/keys, POST /v1/keys/seed, POST /v1/keys/rotate, POST /v1/keys/{kid}/revoke", "A"},
	{"U106", "GET /v1/events", "R S W"},
	{"U107", "GET /v1/executions/{id}/attempts/{n}/stream, GET /v1/executions/{id}/stream, GET /v1/executions/{id}/summary", "R S W"},
	{"U108", "GET /v1/webhooks, POST /v1/webhooks, GET /v1/webhooks/{id}, PATCH /v1/webhooks/{id}, DELETE /v1/webhooks/{id}, POST /v1/webhooks/{id}/rotate, POST /v1/webhooks/{id}/test, POST /v1/webhooks/{id}/enable, POST /v1/webhooks/{id}/replay", "O"},
	{"U108", "GET /v1/webhooks/{id}/deliveries, POST /v1/webhooks/{id}/deliveries/{delivery}/redeliver", "O"},
	{"U109", "GET /v1/schedules, POST /v1/schedules, GET /v1/schedules/{name}, PUT /v1/schedules/{name}, DELETE /v1/schedules/{name}", "S O"},
	{"U109", "POST /v1/schedules/{name}/pause, POST /v1/schedules/{name}/resume, POST /v1/schedules/{name}/run, POST /v1/schedules/{name}/backfill, GET /v1/schedules/{name}/history", "S O"},
	{"U110", "GET /v1/audit", "A"},
	{"U131", "GET /v1/audit/verify", "A"},
	{"U111", "GET /v1/whoami", "any"},
	{"U112", "GET /v1/info", "any"},
	{"U113", "GET /v1/admin/settings, GET /v1/admin/doctor, GET /v1/admin/integrity, POST /v1/admin/backup, POST /v1/admin/drain", "A"},
	{"U114", "GET /healthz, GET /readyz", "-"},
	{"U115", "GET /metrics", "R"},
	{"U116", "GET /openapi.json, GET /docs, GET /problems/{code}", "-"},
	{"U118", "POST /v1/nudge", "S W"},
	{"R5", "POST /v1/admin/rollbacks/acknowledge", "A"},
}

func TestU122_the_roles_of_every_route_are_those_of_the_specification(t *testing.T) {
	t.Parallel()
	letters := map[string]Role{"R": Read, "S": Submit, "W": Work, "O": Operate, "A": Admin, "P": Token, "-": Open, "any": Any}
	type row struct {
		rule  string
		roles Role
	}
	want := map[string]row{}
	for _, s := range specified {
		var roles Role
		for letter := range strings.FieldsSeq(s.roles) {
			roles |= letters[letter]
		}
		for route := range strings.SplitSeq(s.routes, ", ") {
			want[route] = row{s.rule, roles}
		}
	}
	have := map[string]row{}
	for _, o := range Operations() {
		have[o.Method+" "+o.Path] = row{o.Rule, o.Roles}
	}
	for route, w := range want {
		if h, ok := have[route]; !ok || h != w {
			t.Errorf("%s: specified %s %s, in the table %s %s", route, w.rule, w.roles, h.rule, h.roles)
		}
	}
	for route := range have {
		if _, ok := want[route]; !ok {
			t.Errorf("%s is not specified", route)
		}
	}
}

// bounded are the conditions that the specification states beside the letters.
var bounded = map[string]map[Role]Condition{
	"U37": {Submit: OwnWork, Work: OwnLanes}, "U38": {Submit: OwnWork, Work: OwnLanes}, "U39": {Submit: OwnWork, Work: OwnLanes}, "U40": {Submit: OwnWork, Work: OwnLanes}, "U42": {Submit: OwnWork, Work: OwnLanes},
	"U43": {Submit: OwnWork}, "U44": {Submit: OwnWork}, "U45": {Submit: OwnWork, Work: WithLease}, "U46": {Submit: OwnWork}, "U53": {Submit: OwnWork},
	"U90": {Submit: OwnWork}, "U91": {Submit: OwnWork}, "U92": {Submit: OwnWork}, "U93": {Submit: OwnWork}, "U94": {Submit: OwnWork},
	"U57": {Operate: NoRemoval}, "U68": {Operate: WithOverride}, "U69": {Operate: WithOverride}, "U83": {Work: WithLease}, "U98": {Work: LeasedInLanes},
	"U101": {Admin: AllNamespaces}, "U103": {Operate: SharedThings, Admin: SharedThings, Work: OwnInstance}, "U105": {Admin: AllNamespaces}, "U106": {Submit: OwnEvents, Work: OwnFeed}, "U107": {Submit: OwnWork, Work: OwnLanes}, "U113": {Admin: AllNamespaces},
	"R5": {Admin: AllNamespaces},
}

func TestU122_roles_are_bounded_as_the_specification_says(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		want := bounded[o.Rule]
		switch {
		case (o.Rule == "U99" || o.Rule == "U100") && o.Roles == Operate:
			want = map[Role]Condition{Operate: SharedThings, Admin: SharedThings} // U121; who reads quotas and lanes is not bounded
		case o.ID == ListFlows.ID:
			want = map[Role]Condition{Submit: OwnListed} // what it made itself, and no search
		case o.Rule == "U84" && o.Roles&Work != 0:
			want = map[Role]Condition{Work: WithLease} // only operators see the address of a link
		}
		if !reflect.DeepEqual(o.Only, want) {
			t.Errorf("%s: %v, specified %v", o.ID, o.Only, want)
		}
	}
}

func TestU122_a_caller_is_let_in_by_the_least_bounded_of_its_roles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    *Operation
		have Role
		want []Condition
	}{
		{"no role", CancelExecution.Operation, 0, nil},
		{"a role of another sort", CancelExecution.Operation, Read, nil},
		{"a worker", CancelExecution.Operation, Work, []Condition{WithLease}},
		{"a submitter who works", CancelExecution.Operation, Submit | Work, []Condition{OwnWork, WithLease}},
		{"an operator who submits", CancelExecution.Operation, Submit | Operate, []Condition{Always}},
		{"an operator who reads", GetExecution.Operation, Operate, []Condition{Always}},
		{"an admin", CancelExecution.Operation, Admin, []Condition{Always}},
		{"an admin where operators are bounded", StartBulk.Operation, Admin | Operate, []Condition{Always}},
		{"an admin of a shared thing", PauseLane.Operation, Admin, []Condition{SharedThings}},
		{"an admin of the installation", GetSettings.Operation, Admin, []Condition{AllNamespaces}},
		{"an operator of the installation", GetSettings.Operation, Operate, nil},
		{"anybody", GetHealth.Operation, 0, []Condition{Always}},
		{"any key", GetInfo.Operation, Work, []Condition{Always}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Allows(c.o, c.have); !slices.Equal(got, c.want) {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestU122_operate_includes_read_and_admin_everything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, want Role }{
		{Read, Read}, {Submit, Submit}, {Work, Work}, {Operate, Operate | Read}, {Admin, Read | Submit | Work | Operate | Admin}, {0, 0},
	} {
		if got := c.have.Held(); got != c.want {
			t.Errorf("%s holds %s, want %s", c.have, got, c.want)
		}
	}
}

func TestU104_roles_are_known_by_their_names(t *testing.T) {
	t.Parallel()
	all := Read | Submit | Work | Operate | Admin
	names := all.Names()
	if !slices.Equal(names, []string{"read", "submit", "work", "operate", "admin"}) {
		t.Fatalf("%v", names)
	}
	var back Role
	for _, name := range names {
		role, ok := RoleNamed(name)
		if !ok {
			t.Errorf("%s is not known", name)
		}
		back |= role
	}
	if back != all {
		t.Errorf("%s", back)
	}
	for _, name := range []string{"", "open", "any", "root", "Read"} {
		if _, ok := RoleNamed(name); ok {
			t.Errorf("%q is a role", name)
		}
	}
}
