package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// named is the name of something that all namespaces share, such as a lane or a quota, for this test alone.
func (w *world) named(what string) string { return w.namespace + "-" + what }

// ownLane is the lane of the test, in quotes.
func (w *world) ownLane() string { return `"` + w.named("lane") + `"` }

// job submits to the lane of the test, with more fields.
func (w *world) job(t testing.TB, more string) (id string) {
	t.Helper()
	return w.submit(t, `{"kind":"job","lane":`+w.ownLane()+and(more)+`}`)
}

// and is a field that follows others.
func and(more string) string {
	if more == "" {
		return ""
	}
	return "," + more
}

// takeJob claims one job of the lane of the test, and waits for it.
func (w *world) takeJob(t testing.TB) task { t.Helper(); return w.claim(t, w.named("lane")) }

// takes checks that this job is the next one that is claimed.
func (w *world) takes(t testing.TB, id string) task {
	t.Helper()
	k := w.takeJob(t)
	if k.id != id {
		t.Fatalf("claimed %s, want %s", k.id, id)
	}
	return k
}

// takesNothing checks that no job can be claimed.
func (w *world) takesNothing(t testing.TB) { t.Helper(); w.claimsNothing(t, w.named("lane")) }

// started submits a job and claims it.
func (w *world) started(t testing.TB, more string) task {
	t.Helper()
	return w.takes(t, w.job(t, more))
}

// limit states a quota and answers its id.
func (w *world) limit(t testing.TB, name, settings string) (id string) {
	t.Helper()
	id = w.named(name)
	w.send(t, "PUT", "/v1/quotas/"+id, settings).wants(t, 200)
	return id
}

// attached attaches work to quotas, given as id or id/key.
func attached(quotas ...string) string {
	uses := make([]string, len(quotas))
	for i, quota := range quotas {
		id, key, keyed := strings.Cut(quota, "/")
		if uses[i] = `{"quota":"` + id + `"}`; keyed {
			uses[i] = `{"quota":"` + id + `","key":"` + key + `"}`
		}
	}
	return `"quotas":[` + strings.Join(uses, ",") + `]`
}

// ofAll is the server as somebody sees it who sees all namespaces: what they share is hidden from the others in part.
func (w *world) ofAll() *world { return &world{w.serving, "", w.leases} }

// inUse checks the use of a quota: of one that has no keys, its only one.
func (w *world) inUse(t testing.TB, quota string, slots, admissions, blocked int) reply {
	t.Helper()
	shown := w.ofAll().get(t, "/v1/quotas/"+quota).wants(t, 200)
	if slots+admissions+blocked == 0 && shown.field(t, "keys") == nil {
		return shown
	}
	return shown.shows(t, fields{"keys.0.slots": slots, "keys.0.admissions": admissions, "keys.0.blocked": blocked})
}

// purse makes a budget of so many tokens, and answers the policy of work that needs some of them.
func (w *world) purse(t testing.TB, name string, hard, need int) (policy string) {
	t.Helper()
	w.post(t, "/v1/budgets", fmt.Sprintf(`{"name":%q,"dimensions":{"tokens":{"hard":%d}}}`, name, hard)).wants(t, 201)
	return fmt.Sprintf(`"budget_ids":[%q],"estimate":{"tokens":%d}`, name, need)
}

// isBlocked checks that a job waits for this key, as its event told.
func (w *world) isBlocked(t testing.TB, id, reason, key string) {
	t.Helper()
	w.state(t, id, fields{"status": "blocked", "reason": reason})
	if got := w.lastTold(t, id, "execution.blocked")["blocked_on"]; got != key {
		t.Errorf("%s is blocked on %v, want %s", id, got, key)
	}
}

// lastTold is the data of the last event of a kind about an execution; nil when there was none.
func (w *world) lastTold(t testing.TB, id, kind string) (data map[string]any) {
	t.Helper()
	if told := w.toldOf(t, id, kind); len(told) > 0 {
		data, _ = told[len(told)-1].field(t, "data").(map[string]any)
	}
	return data
}

// leavesAlone checks that a call answers with this status and code, and that the execution is then what it was.
func (w *world) leavesAlone(t testing.TB, id string, call reply, status int, code string, before reply) {
	t.Helper()
	call.refuses(t, status, code)
	if after := w.get(t, at(id)+"?view=full"); string(after.body) != string(before.body) {
		t.Errorf("%s: it changed\n%s\n%s", call.asked, before.body, after.body)
	}
}

// shown is the whole record of an execution.
func (w *world) shown(t testing.TB, id string) reply {
	t.Helper()
	return w.get(t, at(id)+"?view=full").wants(t, 200)
}

// moment is a time of an answer.
func (r reply) moment(t testing.TB, path string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, r.text(t, path))
	if err != nil {
		t.Fatalf("%s: %s: %v: %s", r.asked, path, err, r.body)
	}
	return moment
}
