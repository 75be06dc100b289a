package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// admin administers everything, adminOf one namespace.
var admin = engine.Caller{Principal: "root", Actor: "operator", RequestID: "r-9", Address: "192.0.2.7"}

func adminOf(namespace string) engine.Caller {
	return engine.Caller{Principal: "root-" + namespace, Actor: "operator", Namespaces: []string{namespace}}
}

// secret is one that differs from those of other numbers.
func secret(n byte) keyring.APISecret { return keyring.MintAPISecret([40]byte{0: n, 39: n}) }

func keyFor(namespaces ...string) keyring.APIKeySettings {
	return keyring.APIKeySettings{Name: "ci", Roles: []string{"submit"}, Namespaces: namespaces}
}

// key makes an API key with the secret of that number.
func (w *world) key(n byte, namespaces ...string) keyring.APIKey {
	w.t.Helper()
	return must(w.e.CreateAPIKey(w.ctx(), admin, secret(n), keyFor(namespaces...), engine.AdminAction{}))(w.t)
}

// authenticate fails the test unless the secret of that number works.
func (w *world) authenticate(n byte) keyring.APIKey {
	w.t.Helper()
	return must(w.e.Authenticate(w.ctx(), secret(n).Reveal()))(w.t)
}

func TestU104_a_key_is_made_found_changed_rotated_and_revoked(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		k := w.key(1, "a")
		got := w.authenticate(1)
		same(t, "authenticated", []any{got.ID, got.Name, got.Roles, got.Namespaces, got.Hash}, []any{k.ID, "ci", []string{"submit"}, []string{"a"}, []byte(nil)})
		_, err := w.e.Authenticate(w.ctx(), "")
		refused(t, err, base.CodeMissingCredentials)
		for _, wrong := range []string{"nonsense", secret(2).Reveal(), secret(1).Reveal()[:59] + "A"} {
			_, err := w.e.Authenticate(w.ctx(), wrong)
			refused(t, err, base.CodeInvalidCredentials)
		}
		roles := []string{"work"}
		changed := must(w.e.ChangeAPIKey(w.ctx(), admin, k.ID, keyring.APIKeyPatch{Roles: &roles}, false, engine.AdminAction{Revision: ptr(k.Revision)}))(t)
		same(t, "changed", w.authenticate(1).Roles, roles) // at once in this process (U120)
		_, err = w.e.ChangeAPIKey(w.ctx(), admin, k.ID, keyring.APIKeyPatch{}, false, engine.AdminAction{Revision: ptr(k.Revision)})
		same(t, "present revision", refused(t, err, base.CodePreconditionFailed).Details["revision"], any(changed.Revision))
		fresh := keyring.MintSecretOf(k.ID, [32]byte{9})
		same(t, "rotated", must(w.e.RotateAPIKey(w.ctx(), admin, fresh, base.Minute, engine.AdminAction{}))(t).Present, true)
		w.authenticate(1)
		must(w.e.Authenticate(w.ctx(), fresh.Reveal()))(t)
		must(w.e.RevokeAPIKey(w.ctx(), admin, k.ID, false, engine.AdminAction{}))(t)
		must(w.e.RevokeAPIKey(w.ctx(), admin, k.ID, false, engine.AdminAction{}))(t)
		_, err = w.e.Authenticate(w.ctx(), fresh.Reveal())
		refused(t, err, base.CodeAPIKeyRevoked)
	})
}

func TestU13_one_request_at_two_servers_at_once_makes_one_key(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other, how := w.another(), engine.AdminAction{RequestKey: "once"}
		b := w.interpose()
		var first keyring.APIKey
		b.afterBegin.set(func(want store.Want) bool { return len(want.Docs) == 2 }, func() {
			first = must(other.CreateAPIKey(w.ctx(), admin, secret(1), keyFor("a"), how))(t)
		})
		k := must(w.e.CreateAPIKey(w.ctx(), admin, secret(2), keyFor("a"), how))(t)
		same(t, "the key of the first", k.ID, first.ID)
		_, err := w.e.Authenticate(w.ctx(), secret(2).Reveal())
		refused(t, err, base.CodeInvalidCredentials)
	})
}

func TestU13_a_repeated_create_finds_the_key_and_a_repeated_rotation_does_not_rotate_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		how := engine.AdminAction{RequestKey: "once"}
		k := must(w.e.CreateAPIKey(w.ctx(), admin, secret(1), keyFor("a"), how))(t)
		again := must(w.e.CreateAPIKey(w.ctx(), admin, secret(2), keyFor("a"), how))(t)
		same(t, "recorded", again.ID, k.ID)
		_, err := w.e.CreateAPIKey(w.ctx(), admin, secret(2), keyFor("b"), how)
		refused(t, err, base.CodeIdempotencyConflict)
		same(t, "by its secret", must(w.e.CreateAPIKey(w.ctx(), admin, secret(1), keyFor("a"), engine.AdminAction{}))(t).ID, k.ID)
		_, err = w.e.CreateAPIKey(w.ctx(), admin, keyring.MintSecretOf(k.ID, [32]byte{3}), keyFor("a"), engine.AdminAction{})
		refused(t, err, base.CodeIDConflict)
		rotate := func(n byte) engine.RotatedKey {
			return must(w.e.RotateAPIKey(w.ctx(), admin, keyring.MintSecretOf(k.ID, [32]byte{n}), 0, engine.AdminAction{RequestKey: "r"}))(t)
		}
		first, second := rotate(4), rotate(5)
		same(t, "rotations", []any{first.Present, second.Present, second.Key.Revision}, []any{true, false, first.Key.Revision})
		must(w.e.Authenticate(w.ctx(), keyring.MintSecretOf(k.ID, [32]byte{4}).Reveal()))(t)
		all, _, err := w.e.APIKeys(w.ctx(), admin, "", nil)
		ok(t, err)
		same(t, "keys", len(all), 1)
	})
}

func TestU120_a_key_revoked_by_another_process_stops_working_within_five_seconds(t *testing.T) {
	t.Parallel()
	host := clock.NewManual(start)
	onShared(t, engine.Config{Clock: host}, func(t *testing.T, w *world) {
		other := w.another()
		k := w.key(1, "a")
		must(other.Authenticate(w.ctx(), secret(1).Reveal()))(t)
		must(other.Authenticate(w.ctx(), secret(1).Reveal()))(t) // and is remembered
		must(w.e.RevokeAPIKey(w.ctx(), admin, k.ID, false, engine.AdminAction{}))(t)
		_, err := w.e.Authenticate(w.ctx(), secret(1).Reveal())
		refused(t, err, base.CodeAPIKeyRevoked)
		host.TurnTo(host.Now().Add(5 * time.Second))
		_, err = other.Authenticate(w.ctx(), secret(1).Reveal())
		refused(t, err, base.CodeAPIKeyRevoked)
	})
}

func TestU119_a_busy_key_costs_the_store_next_to_nothing(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		counting := &counted{Store: w.store}
		w.e = w.openEngine(counting)
		k := w.key(1, "a")
		w.authenticate(1)
		w.authenticate(1)
		queries, writes := counting.queries.Load(), counting.writes.Load()
		for range 100 {
			w.authenticate(1)
		}
		same(t, "writes", counting.writes.Load()-writes, int64(0))
		if n := counting.queries.Load() - queries; n > 5 { // the engine's own loops may ask something meanwhile
			t.Errorf("%d queries for 100 calls", n)
		}
		used := must(w.e.APIKey(w.ctx(), admin, k.ID))(t).LastUsedAt
		same(t, "last use", used, w.now())
		w.turn(base.Minute)
		w.authenticate(1)
		same(t, "last use", must(w.e.APIKey(w.ctx(), admin, k.ID))(t).LastUsedAt, w.now())
		same(t, "revision", must(w.e.APIKey(w.ctx(), admin, k.ID))(t).Revision, k.Revision)
	})
}

func TestU104_a_key_expires_by_the_stores_clock(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		s := keyFor("a")
		s.ExpiresAt = w.now().Add(2 * base.Second)
		must(w.e.CreateAPIKey(w.ctx(), admin, secret(1), s, engine.AdminAction{}))(t)
		w.authenticate(1)
		w.turn(2 * base.Second)
		_, err := w.e.Authenticate(w.ctx(), secret(1).Reveal())
		refused(t, err, base.CodeAPIKeyExpired)
	})
}

func TestU122_an_admin_reaches_keys_of_its_own_namespaces_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own, others, both, all := w.key(1, "a"), w.key(2, "b"), w.key(3, "a", "b"), w.key(4, "*")
		c := adminOf("a")
		for _, k := range []keyring.APIKey{others, both, all} {
			_, err := w.e.APIKey(w.ctx(), c, k.ID)
			hidden := refused(t, err, base.CodeAPIKeyNotFound)
			_, err = w.e.APIKey(w.ctx(), c, "aaaaaaaaaaaa")
			same(t, "a hidden key and none", len(hidden.Details), len(refused(t, err, base.CodeAPIKeyNotFound).Details))
			_, err = w.e.RevokeAPIKey(w.ctx(), c, k.ID, false, engine.AdminAction{})
			refused(t, err, base.CodeAPIKeyNotFound)
			_, err = w.e.ChangeAPIKey(w.ctx(), c, k.ID, keyring.APIKeyPatch{}, false, engine.AdminAction{})
			refused(t, err, base.CodeAPIKeyNotFound)
		}
		_, err := w.e.CreateAPIKey(w.ctx(), c, secret(5), keyFor("a", "b"), engine.AdminAction{})
		refused(t, err, base.CodeNamespaceForbidden)
		_, err = w.e.ChangeAPIKey(w.ctx(), c, own.ID, keyring.APIKeyPatch{Namespaces: &[]string{"*"}}, false, engine.AdminAction{})
		refused(t, err, base.CodeNamespaceForbidden)
		seen, next, err := w.e.APIKeys(w.ctx(), c, "", ptr(1))
		ok(t, err)
		same(t, "seen", []any{len(seen), seen[0].ID, next}, []any{1, own.ID, ""})
		var walked []string
		for cursor, more := "", true; more; more = cursor != "" {
			var page []keyring.APIKey
			page, cursor, err = w.e.APIKeys(w.ctx(), admin, cursor, ptr(3))
			ok(t, err)
			for _, k := range page {
				walked = append(walked, k.ID)
			}
		}
		same(t, "walked", len(walked), 4)
	})
}

func TestU17_of_many_changes_of_one_revision_one_is_made(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		k := w.key(1, "a")
		var mu sync.Mutex
		made := 0
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := w.e.ChangeAPIKey(w.ctx(), admin, k.ID, keyring.APIKeyPatch{MaxInFlight: ptr(3)}, false, engine.AdminAction{Revision: ptr(k.Revision)})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				}
			})
		}
		all.Wait()
		same(t, "made", made, 1)
	})
}

func TestU101_namespaces_are_put_shown_listed_and_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.Namespace(w.ctx(), admin, "a")
		refused(t, err, base.CodeNamespaceNotFound)
		refused(t, w.e.DeleteNamespace(w.ctx(), admin, "a", engine.AdminAction{}), base.CodeNamespaceNotFound)
		_, err = w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{}, engine.AdminAction{Revision: ptr(int64(1))})
		refused(t, err, base.CodeNamespaceNotFound)
		n := must(w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{Description: "first"}, engine.AdminAction{}))(t)
		must(w.e.PutNamespace(w.ctx(), admin, "b", core.NamespaceSettings{}, engine.AdminAction{}))(t)
		same(t, "same again", must(w.e.PutNamespace(w.ctx(), admin, "a", n.NamespaceSettings, engine.AdminAction{}))(t).Revision, n.Revision)
		_, err = w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{}, engine.AdminAction{Revision: ptr(n.Revision + 1)})
		refused(t, err, base.CodePreconditionFailed)
		list, next, err := w.e.Namespaces(w.ctx(), admin, "", ptr(1))
		ok(t, err)
		same(t, "first page", []any{list[0].Name, next != ""}, []any{"a", true})
		_, err = w.e.Namespace(w.ctx(), adminOf("b"), "a")
		refused(t, err, base.CodeNamespaceNotFound)
		list, _, err = w.e.Namespaces(w.ctx(), adminOf("b"), "", nil)
		ok(t, err)
		same(t, "those of b", len(list), 1)
		id := must(w.e.Submit(w.ctx(), client, core.Submission{Namespace: "a", Kind: "k"}))(t).ID.Given()
		refused(t, w.e.DeleteNamespace(w.ctx(), admin, "a", engine.AdminAction{}), base.CodeNamespaceNotEmpty)
		w.cancel(id)
		ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		ok(t, w.e.DeleteNamespace(w.ctx(), admin, "a", engine.AdminAction{}))
		_, err = w.e.Namespace(w.ctx(), admin, "a")
		refused(t, err, base.CodeNamespaceNotFound)
	})
}

func TestU101_the_largest_input_of_a_namespace_holds_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		input := core.Payload{Data: []byte("12345")}
		submit := func(namespace string) error {
			_, err := w.e.Submit(w.ctx(), client, core.Submission{Namespace: namespace, Kind: "k", Input: input})
			return err
		}
		ok(t, submit("a"))
		must(w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{MaxPayloadBytes: 4}, engine.AdminAction{}))(t)
		same(t, "limit", refused(t, submit("a"), base.CodePayloadTooLarge).Details["limit"], any(4))
		ok(t, submit("b"))
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Namespace: "a", Kind: "k", Input: input}, {Namespace: "b", Kind: "k"}}, false))(t)
		refused(t, items[0].Err, base.CodePayloadTooLarge)
		ok(t, items[1].Err)
		must(w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{MaxPayloadBytes: 5}, engine.AdminAction{}))(t)
		ok(t, submit("a"))
	})
}

func TestU113_an_integrity_check_finds_nothing_and_then_what_was_broken(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // the test breaks a queue
		w.capped("capped", 3)
		w.submitMany(3, core.Submission{Lane: "capped"})
		r := ask()
		r.Lanes, r.Max = []string{"capped"}, 2
		same(t, "taken", len(w.take(r)), 2)
		waiting := w.submitMany(600, core.Submission{})
		w.cancel(waiting[0])
		report := must(w.e.Integrity(w.ctx()))(t)
		same(t, "differences", report.Differences, nil)
		same(t, "checked", report.Checked[len(report.Checked)-8:], []string{"search_rows", "queued", "queue_rows", "lane_places", "quota_slots", "wait_marks", "budgets", "flows"})
		same(t, "a file is looked at itself", report.Checked[0] == "pages", w.path != "")

		x := w.get(waiting[1])
		tx, _, err := w.store.Begin(w.ctx(), store.Want{})
		ok(t, err)
		ok(t, tx.Commit(w.ctx(), &store.Changes{
			Dequeue:  []store.QueueRow{{Class: x.Class.ID, Order: x.OrderKey, ID: x.ID.UUID}},
			Enqueue:  []store.QueueRow{{Class: x.Class.ID, Order: 5, ID: waiting[0].UUID}},
			Counters: map[string]int64{"lane:capped": 1},
		}))
		found := map[string]engine.Difference{}
		for _, d := range must(w.e.Integrity(w.ctx()))(t).Differences {
			found[d.What] = d
		}
		same(t, "found", found, map[string]engine.Difference{
			"queued":      {What: "queued", Key: x.ID.String(), Found: 1},
			"queue_rows":  {What: "queue_rows", Key: waiting[0].UUID.String(), Stored: 1},
			"lane_places": {What: "lane_places", Key: "lane:capped", Stored: 3, Found: 2},
		})
	})
}
