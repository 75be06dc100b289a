package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// quota states the settings of a quota.
func (w *world) quota(id string, s core.QuotaSettings) engine.QuotaView {
	w.t.Helper()
	return must(w.e.PutQuota(w.ctx(), operator, id, s, engine.AdminAction{}))(w.t)
}

// attached is a submission that is attached to quotas.
func attached(uses ...core.QuotaUse) core.Submission {
	p, err := core.DefaultPolicy().WithQuotas(uses)
	if err != nil {
		panic(err)
	}
	return core.Submission{Policy: p}
}

// use attaches a quota, with a key if one is given.
func use(quota string, key ...string) core.QuotaUse {
	u := core.QuotaUse{Quota: quota}
	if len(key) > 0 {
		u.Key = key[0]
	}
	return u
}

func (w *world) deleteQuota(id string, force bool) error {
	return w.e.DeleteQuota(w.ctx(), operator, id, force, engine.AdminAction{})
}

func TestS36_put_quota_states_the_whole_record_and_has_bounds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.Quota(w.ctx(), client, "mail")
		refused(t, err, base.CodeQuotaNotFound)
		made := w.quota("mail", core.QuotaSettings{RateLimit: 3, ConcurrencyLimit: 2, PerKey: true}).Quota
		same(t, "absent settings take the default", made.Settings, core.QuotaSettings{RateLimit: 3, WindowMS: 60_000, ConcurrencyLimit: 2, PerKey: true})
		same(t, "made", [3]any{made.Revision, made.CreatedAt, made.UpdatedAt}, [3]any{int64(1), w.now(), w.now()})
		w.turn(1000)
		changed := w.quota("mail", core.QuotaSettings{WindowMS: 1000}).Quota
		same(t, "the whole record", changed.Settings, core.QuotaSettings{WindowMS: 1000})
		same(t, "changed", [3]any{changed.Revision, changed.CreatedAt, changed.UpdatedAt}, [3]any{int64(2), made.CreatedAt, w.now()})
		w.turn(1000)
		same(t, "the same again changes nothing", w.quota("mail", core.QuotaSettings{WindowMS: 1000}).Quota, changed)
		same(t, "events", len(w.events(engine.EventFilter{Kinds: []string{"quota.changed"}})), 2)
		for field, bad := range map[string]core.QuotaSettings{
			"rate_limit": {RateLimit: 1_000_001}, "window_ms": {WindowMS: 999}, "concurrency_limit": {ConcurrencyLimit: -1},
		} {
			_, err := w.e.PutQuota(w.ctx(), operator, "mail", bad, engine.AdminAction{})
			same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, field)
		}
		_, err = w.e.PutQuota(w.ctx(), operator, "-", core.QuotaSettings{}, engine.AdminAction{})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestU17_writes_of_quotas_take_the_revision_that_they_expect(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		put := func(revision int64) error {
			_, err := w.e.PutQuota(w.ctx(), operator, "q", core.QuotaSettings{RateLimit: 1}, engine.AdminAction{Revision: &revision})
			return err
		}
		refused(t, put(1), base.CodeQuotaNotFound)
		w.quota("q", core.QuotaSettings{RateLimit: 2})
		same(t, "present", refused(t, put(7), base.CodePreconditionFailed).Details["revision"], any(int64(1)))
		ok(t, put(1))
		refused(t, w.e.DeleteQuota(w.ctx(), operator, "q", false, engine.AdminAction{Revision: ptr(int64(1))}), base.CodePreconditionFailed)
		ok(t, w.e.DeleteQuota(w.ctx(), operator, "q", false, engine.AdminAction{Revision: ptr(int64(2))}))
		refused(t, w.deleteQuota("q", false), base.CodeQuotaNotFound)
		refused(t, w.deleteQuota("q", true), base.CodeQuotaNotFound)
	})
}

func TestU13_writes_of_quotas_are_repeatable(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		key := engine.AdminAction{RequestKey: "k"}
		for range 2 {
			same(t, "revision", must(w.e.PutQuota(w.ctx(), operator, "q", core.QuotaSettings{RateLimit: 1}, key))(t).Quota.Revision, 1)
		}
		_, err := w.e.PutQuota(w.ctx(), operator, "q", core.QuotaSettings{RateLimit: 2}, key)
		refused(t, err, base.CodeIdempotencyConflict)
		for range 2 {
			ok(t, w.e.DeleteQuota(w.ctx(), operator, "q", false, key))
		}
	})
}

func TestU131_changes_of_quotas_stand_in_the_audit_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 1})
		w.quota("q", core.QuotaSettings{RateLimit: 1})
		must(w.e.PutQuota(w.ctx(), operator, "q", core.QuotaSettings{RateLimit: 2}, engine.AdminAction{Reason: "twice as much"}))(t)
		ok(t, w.deleteQuota("q", true))
		var deeds []string
		for _, row := range w.told(operator, core.AuditFilter{Entity: "quota"}) {
			same(t, "whose", [2]string{row.Namespace, row.EntityID}, [2]string{keyring.Everywhere, "q"})
			deeds = append(deeds, row.Action+" "+row.Reason)
		}
		same(t, "deeds, newest first", deeds, []string{"delete_quota ", "put_quota twice as much", "put_quota "})
	})
}

func TestS39_quotas_are_listed_by_id(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, id := range []string{"c", "a", "b"} {
			w.quota(id, core.QuotaSettings{RateLimit: 1})
		}
		ids, cursor := []string{}, ""
		for {
			quotas, next, err := w.e.Quotas(w.ctx(), client, cursor, ptr(2))
			ok(t, err)
			for _, view := range quotas {
				ids = append(ids, view.Quota.ID)
			}
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "ids", ids, []string{"a", "b", "c"})
		_, _, err := w.e.Quotas(w.ctx(), client, "nonsense", nil)
		refused(t, err, base.CodeInvalidCursor)
	})
}

func TestS37_a_policy_attaches_quotas_that_exist_with_a_key_iff_they_count_by_key(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("plain", core.QuotaSettings{RateLimit: 100})
		w.quota("keyed", core.QuotaSettings{RateLimit: 100, PerKey: true})
		for field, s := range map[string]core.Submission{
			"quotas[1].quota": attached(use("plain"), use("nope")),
			"quotas[0].key":   attached(use("keyed")),
			"quotas[1].key":   attached(use("keyed", "a"), use("plain", "a")),
		} {
			s.Kind = "k"
			_, err := w.e.Submit(w.ctx(), client, s)
			same(t, "field", refused(t, err, base.CodeInvalidPolicy).Field, field)
			items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{s, {Kind: "k"}}, false))(t)
			same(t, "field of an item", refused(t, items[0].Err, base.CodeInvalidPolicy).Field, field)
			ok(t, items[1].Err)
			_, err = w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k"}, s}, true)
			same(t, "field of an atomic batch", refused(t, err, base.CodeInvalidPolicy).Field, field)
			own := w.beginOwn()
			_, err = w.e.SubmitTx(w.ctx(), client, own.tx, s)
			same(t, "field in the user's own transaction", refused(t, err, base.CodeInvalidPolicy).Field, field)
			own.rollback()
		}
		id := w.submit(attached(use("keyed", "a"), use("plain")))
		same(t, "attached", w.get(id).Policy.Quotas, []core.QuotaUse{use("keyed", "a"), use("plain")})
		same(t, "finer classes", w.classOf(id) != w.classOf(w.submit(attached(use("keyed", "b"), use("plain")))), true)
		same(t, "the same needs, the same class", w.classOf(id), w.classOf(w.submit(attached(use("keyed", "a"), use("plain")))))
	})
}

func TestL80_references_come_after_duplicates_and_the_state_of_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 1})
		s := attached(use("q"))
		s.Kind, s.IdempotencyKey = "k", "once"
		first := w.submit(s)
		byID := attached(use("q"))
		byID.Kind, byID.ID = "k", ptr(base.IDOf(base.UUID{9, 15: 1}).Given())
		second := w.submit(byID)
		ok(t, w.deleteQuota("q", true))
		again := must(w.e.Submit(w.ctx(), client, s))(t)
		same(t, "by its key", [2]any{again.Outcome, again.ID.Given()}, [2]any{"duplicate", first})
		again = must(w.e.Submit(w.ctx(), client, byID))(t)
		same(t, "by its id", [2]any{again.Outcome, again.ID.Given()}, [2]any{"duplicate", second})
		w.lane("shut", core.LaneSettings{State: core.LaneDisabled})
		s = attached(use("q"))
		s.Kind, s.Lane = "k", "shut"
		_, err := w.e.Submit(w.ctx(), client, s)
		refused(t, err, base.CodeLaneNotAccepting)
		s.Lane = ""
		_, err = w.e.Submit(w.ctx(), client, s)
		refused(t, err, base.CodeInvalidPolicy)
	})
}

func TestL80_a_quota_of_another_process_is_known_at_once_and_gone_at_once(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		s := attached(use("q"))
		s.Kind = "k"
		for range 3 {
			w.quota("q", core.QuotaSettings{RateLimit: 1})
			must(other.Submit(w.ctx(), client, s))(t)
			ok(t, w.deleteQuota("q", true))
			_, err := other.Submit(w.ctx(), client, s)
			refused(t, err, base.CodeInvalidPolicy)
		}
	})
}

func TestS38_a_quota_in_use_is_deleted_by_force_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 100})
		id := w.submit(attached(use("q")))
		refused(t, w.deleteQuota("q", false), base.CodeQuotaInUse)
		w.cancel(id)
		ok(t, w.deleteQuota("q", false)) // what has ended needs it no more
		w.quota("q", core.QuotaSettings{RateLimit: 100})
		id = w.submit(attached(use("q")))
		ok(t, w.deleteQuota("q", true))
		_, err := w.e.Quota(w.ctx(), client, "q")
		refused(t, err, base.CodeQuotaNotFound)
		w.complete(w.claim())
		w.becomes(id, core.Succeeded)
	})
}

func TestU101_a_namespace_gives_its_default_quotas_to_submits_that_do_not_name_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		put := func(uses ...core.QuotaUse) error {
			_, err := w.e.PutNamespace(w.ctx(), operator, "acme", core.NamespaceSettings{DefaultQuotas: uses}, engine.AdminAction{})
			return err
		}
		same(t, "unknown", refused(t, put(use("a")), base.CodeInvalidArgument).Field, "default_quotas[0].quota")
		w.quota("a", core.QuotaSettings{RateLimit: 100})
		w.quota("b", core.QuotaSettings{RateLimit: 100, PerKey: true})
		same(t, "keyless", refused(t, put(use("a"), use("b")), base.CodeInvalidArgument).Field, "default_quotas[1].key")
		same(t, "twice", refused(t, put(use("a"), use("a")), base.CodeInvalidArgument).Field, "default_quotas[1].quota")
		ok(t, put(use("a"), use("b", "acme")))

		s := attached(use("b", "mine"))
		s.Namespace, s.IdempotencyKey = "acme", "once"
		id := w.submit(s)
		same(t, "quotas", w.get(id).Policy.Quotas, []core.QuotaUse{use("b", "mine"), use("a")})
		s.Kind, s.ID = "k", &id
		same(t, "the same work by its key", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		s.IdempotencyKey = ""
		same(t, "and by its id", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		ok(t, put(use("b", "acme")))
		same(t, "also after the defaults have changed", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		same(t, "elsewhere", w.get(w.submit(core.Submission{})).Policy.Quotas, nil)

		refused(t, w.deleteQuota("b", false), base.CodeQuotaInUse)
		ok(t, w.deleteQuota("b", true))
		same(t, "one that is gone", w.get(w.submit(core.Submission{Namespace: "acme"})).Policy.Quotas, nil)
	})
}

func TestS45_a_quota_that_cannot_be_read_stops_nothing_but_what_needs_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("bad", core.QuotaSettings{RateLimit: 100})
		w.quota("good", core.QuotaSettings{RateLimit: 100})
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 128, Key: "bad"}, Body: []byte(`{"quota_id":7}`)}}})
		_, err := w.e.Quota(w.ctx(), client, "bad")
		refused(t, err, base.CodeCorruption)
		quotas, _, err := w.e.Quotas(w.ctx(), client, "", nil)
		ok(t, err)
		same(t, "listed", len(quotas), 1)
		w.submit(attached(use("bad")))
		good := w.submit(attached(use("good")))
		same(t, "taken", given(w.claim()), good)
		w.quota("bad", core.QuotaSettings{RateLimit: 100}) // so it is mended
		w.turn(60_000)
		w.complete(w.claim())
	})
}

func TestI14_a_quota_shows_each_tenant_its_own_use(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		a, b := engine.Caller{Principal: "a", Actor: "client", Namespaces: []string{"a"}}, engine.Caller{Principal: "b", Actor: "client", Namespaces: []string{"b"}}
		w.quota("q", core.QuotaSettings{RateLimit: 100, ConcurrencyLimit: 2})
		w.quota("k", core.QuotaSettings{ConcurrencyLimit: 2, PerKey: true})
		of := func(namespace string) core.Submission {
			s := attached(use("q"), use("k", namespace))
			s.Namespace = namespace
			return s
		}
		mine := w.submit(of("a"))
		w.claim()
		before := must(w.e.Quota(w.ctx(), a, "q"))(t)
		w.submitMany(3, of("b"))
		w.claim()
		w.nothing() // the best of b is blocked, which speaks for the other (S19)
		same(t, "what a sees of what they share", must(w.e.Quota(w.ctx(), a, "q"))(t).Keys, []engine.QuotaKeyView{{Held: 1, Holders: []base.ID{mine.ID()}}})
		same(t, "as before, but for what no other was part of", before.Keys[0].Held, 1)
		shared := must(w.e.Quota(w.ctx(), b, "q"))(t).Keys
		same(t, "what b sees", [4]int{shared[0].Held, len(shared[0].Holders), shared[0].Blocked, shared[0].Admitted}, [4]int{1, 1, 1, 0})
		keys := func(c engine.Caller) (keys []string) {
			for _, key := range must(w.e.Quota(w.ctx(), c, "k"))(t).Keys {
				keys = append(keys, key.Key)
			}
			return keys
		}
		same(t, "keys", [][]string{keys(a), keys(b), keys(client)}, [][]string{{"a"}, {"b"}, {"a", "b"}})
		all := must(w.e.Quota(w.ctx(), client, "q"))(t).Keys
		same(t, "all of it", [4]int{all[0].Held, len(all[0].Holders), all[0].Blocked, all[0].Admitted}, [4]int{2, 2, 1, 2})
		same(t, "holders", slices.Contains(all[0].Holders, mine.ID()), true)
	})
}
