package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// boss makes an API key that administers these namespaces.
func (w *world) boss(n byte, s keyring.APIKeySettings) keyring.APIKey {
	w.t.Helper()
	s.Name, s.Roles = "boss", append(s.Roles, "admin")
	return must(w.e.CreateAPIKey(w.ctx(), admin, secret(n), s, engine.AdminAction{}))(w.t)
}

// everywhere is the settings of a key for all namespaces.
func everywhere() keyring.APIKeySettings { return keyring.APIKeySettings{Namespaces: []string{"*"}} }

func TestU125_the_last_key_that_administers_all_is_taken_away_by_force_only(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.key(1, "*")
		w.boss(2, keyring.APIKeySettings{Namespaces: []string{"a"}})
		soon := w.now().Add(base.Second)
		w.boss(3, keyring.APIKeySettings{Namespaces: []string{"*"}, ExpiresAt: soon})
		gone := w.boss(4, everywhere())
		last := w.boss(5, everywhere())
		must(w.e.RevokeAPIKey(w.ctx(), admin, gone.ID, false, engine.AdminAction{}))(t)
		w.turnTo(soon)

		_, err := w.e.RevokeAPIKey(w.ctx(), admin, last.ID, false, engine.AdminAction{})
		refused(t, err, base.CodeLastAdminKey)
		for _, patch := range []keyring.APIKeyPatch{{Roles: &[]string{"read"}}, {Namespaces: &[]string{"a"}}} {
			_, err := w.e.ChangeAPIKey(w.ctx(), admin, last.ID, patch, false, engine.AdminAction{})
			refused(t, err, base.CodeLastAdminKey)
		}
		must(w.e.ChangeAPIKey(w.ctx(), admin, last.ID, keyring.APIKeyPatch{Roles: &[]string{"admin", "read"}, Name: ptr("me")}, false, engine.AdminAction{}))(t)
		must(w.e.RotateAPIKey(w.ctx(), admin, keyring.MintSecretOf(last.ID, [32]byte{9}), 0, engine.AdminAction{}))(t)
		must(w.e.Authenticate(w.ctx(), keyring.MintSecretOf(last.ID, [32]byte{9}).Reveal()))(t)
		must(w.e.RevokeAPIKey(w.ctx(), admin, last.ID, true, engine.AdminAction{}))(t)
		must(w.e.RevokeAPIKey(w.ctx(), admin, last.ID, false, engine.AdminAction{}))(t) // a second time is a success
	})
}

func TestU125_two_admin_keys_revoked_at_the_same_time_leave_one(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another()}
		keys := []keyring.APIKey{w.boss(1, everywhere()), w.boss(2, everywhere())}
		answers := make(chan error, len(keys))
		for i, e := range engines {
			go func() {
				_, err := e.RevokeAPIKey(w.ctx(), admin, keys[i].ID, false, engine.AdminAction{})
				answers <- err
			}()
		}
		refusals := 0
		for range keys {
			if err := <-answers; err != nil {
				refused(t, err, base.CodeLastAdminKey)
				refusals++
			}
		}
		same(t, "refusals", refusals, 1)
	})
}
