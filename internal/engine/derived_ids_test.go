package engine_test

import (
	"crypto/sha256"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func (w *world) derived(e *engine.Engine, c engine.Caller, d engine.Derivation) base.UUID {
	w.t.Helper()
	return must(e.DerivedID(w.ctx(), c, d))(w.t)
}

func TestU13_the_id_of_a_request_is_the_same_at_every_server_of_a_store_and_at_no_other_store(t *testing.T) {
	t.Parallel()
	d := engine.Derivation{Namespace: "a", RequestKey: "order-99"}
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		same(t, "at another server", w.derived(w.another(), byKey("k1", "shop", "a"), d), w.derived(w.e, byKey("k1", "shop", "a"), d))
	})
	onStores(t, func(t *testing.T, w *world) {
		key := byKey("k1", "shop", "a")
		first := w.derived(w.e, key, d)
		w.restart()
		same(t, "after a restart", w.derived(w.e, key, d), first)
		guess := sha256.Sum256([]byte("shop\x00a\x00order-99\x000\x00"))
		ids := map[base.UUID]string{base.MintUUID(0, [10]byte(guess[:10])): "what everybody can compute", first: "the first"}
		for name, other := range map[string]struct {
			c engine.Caller
			d engine.Derivation
		}{
			"another key of the same name": {byKey("k2", "shop", "a"), d},
			"a key of none":                {engine.Caller{Principal: "shop"}, d},
			"another namespace":            {key, engine.Derivation{Namespace: "b", RequestKey: "order-99"}},
			"another request":              {key, engine.Derivation{Namespace: "a", RequestKey: "order-9"}},
			"another item":                 {key, engine.Derivation{Namespace: "a", RequestKey: "order-99", Index: 1}},
			"a flow":                       {key, engine.Derivation{Namespace: "a", RequestKey: "order-99", Flow: true}},
			"a line":                       {key, engine.Derivation{Namespace: "a", RequestKey: "order-99", Line: true}},
		} {
			id := w.derived(w.e, other.c, other.d)
			if had := ids[id]; had != "" {
				t.Errorf("%s has the id of %s", name, had)
			}
			ids[id] = name
		}
	})
}

func TestU13_a_request_of_before_the_secret_is_recognised_for_a_day_and_only_in_its_namespace(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		key := byKey("k1", "shop", "a")
		d := engine.Derivation{Namespace: "a", RequestKey: "order-99"}
		sum := sha256.Sum256([]byte("shop\x00a\x00order-99\x000\x00"))
		former := base.MintUUID(0, [10]byte(sum[:10]))
		w.tamper(store.Changes{NewDocs: []store.Doc{{DocRef: store.DocRef{Kind: 2, Key: "of an older version"}, Body: []byte(`{"fingerprint":""}`)}}})
		if w.derived(w.e, key, d) == former {
			t.Fatal("an id that is not in use is used on")
		}
		given := base.IDOf(former).Given()
		foreign := engine.Caller{Principal: "thief", Actor: "client", Namespaces: []string{"b"}}
		must(w.e.Submit(w.ctx(), foreign, core.Submission{Namespace: "b", Kind: "job", ID: &given}))(t)
		if w.derived(w.e, key, d) == former {
			t.Fatal("what another tenant has under the id counts")
		}
		sum = sha256.Sum256([]byte("shop\x00a\x00order-98\x000\x00"))
		former, d.RequestKey = base.MintUUID(0, [10]byte(sum[:10])), "order-98"
		given = base.IDOf(former).Given()
		must(w.e.Submit(w.ctx(), key, core.Submission{Namespace: "a", Kind: "job", ID: &given}))(t)
		same(t, "its own", w.derived(w.e, key, d), former)
		w.turn(24 * base.Hour)
		if w.derived(w.e, key, d) == former {
			t.Error("it is used on when no repeat is recognised any more")
		}
	})
}

func TestW4_request_keys_of_two_keys_of_one_name_are_two(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for i, c := range []engine.Caller{
			{Principal: "boss", KeyID: "k1", Actor: "operator", Namespaces: []string{"a"}},
			{Principal: "boss", KeyID: "k2", Actor: "operator", Namespaces: []string{"b"}},
			{Principal: "boss", KeyID: "k3", Actor: "operator", Namespaces: []string{"a"}},
			{Principal: "boss", KeyID: "k3", Actor: "operator", Namespaces: []string{"b"}},
		} {
			s := keyring.APIKeySettings{Name: "made", Roles: []string{"read"}, Namespaces: c.Namespaces, MaxInFlight: i + 1}
			_, err := w.e.CreateAPIKey(w.ctx(), c, keyring.MintAPISecret([40]byte{byte(i)}), s, engine.AdminAction{RequestKey: "same"})
			ok(t, err)
		}
	})
}
