package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// signingSecret is a secret of a signing key that differs from those of other digits.
func signingSecret(digit string) string { return strings.Repeat("0123456789abcde"+digit, 4) }

// tells fails the test unless the answer is exactly this JSON, and must not be cached.
func (a reply) tells(t *testing.T, want string) {
	t.Helper()
	a.wants(t, http.StatusOK)
	var got, expected any
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("%s, want %s", a.body, want)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %s", a.header.Get("Cache-Control"))
	}
}

// keyBody is the body of a seed or a rotation; without a secret for no digit.
func keyBody(kid, digit string, grace int) string {
	if digit == "" {
		return fmt.Sprintf(`{"kid":%q,"grace_ms":%d}`, kid, grace)
	}
	return fmt.Sprintf(`{"kid":%q,"secret_hex":%q,"grace_ms":%d}`, kid, signingSecret(digit), grace)
}

func seedBody(kid, digit string) string {
	return fmt.Sprintf(`{"kid":%q,"secret_hex":%q}`, kid, signingSecret(digit))
}

// wornKeys makes the keys of every state: a is active, v verifies, e is past its time, r was revoked. It ends the key that the
// server made for itself.
func (w *world) wornKeys(t *testing.T) {
	t.Helper()
	own := w.get(t, "/v1/keys").wants(t, 200).text(t, "current_kid")
	w.post(t, "/v1/keys/rotate", keyBody("r", "5", 0)).wants(t, 200)
	w.post(t, "/v1/keys/"+own+"/revoke", "").wants(t, 200)
	w.post(t, "/v1/keys/rotate", keyBody("e", "3", 60_000)).wants(t, 200)
	w.post(t, "/v1/keys/r/revoke", "").wants(t, 200)
	w.post(t, "/v1/keys/rotate", keyBody("v", "2", 0)).wants(t, 200)
	w.post(t, "/v1/keys/rotate", keyBody("a", "1", 3_600_000)).wants(t, 200)
	eventually(t, "the key e is past its time", func() bool {
		return !strings.Contains(string(w.get(t, "/v1/keys").wants(t, 200).body), `"e"`)
	})
}

func TestW14_U105_seed_row_by_row_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.wornKeys(t)
		seed := func(kid, digit string) reply { return w.post(t, "/v1/keys/seed", seedBody(kid, digit)) }
		seed("a", "1").tells(t, `{"outcome":"already_seeded","kid":"a","same_secret":true,"state":"active"}`)
		seed("a", "9").tells(t, `{"outcome":"already_seeded","kid":"a","same_secret":false,"state":"active"}`)
		seed("v", "2").tells(t, `{"outcome":"already_seeded","kid":"v","same_secret":true,"state":"verify_only"}`)
		seed("v", "9").tells(t, `{"outcome":"already_seeded","kid":"v","same_secret":false,"state":"verify_only"}`)
		seed("e", "9").tells(t, `{"outcome":"already_seeded","kid":"e","same_secret":false,"state":"expired"}`)
		seed("r", "5").tells(t, `{"outcome":"already_seeded","kid":"r","same_secret":false,"state":"revoked"}`)
		refusal := seed("n", "9").refuses(t, 409, "seed_conflict")
		if !strings.Contains(refusal.text(t, "detail"), "key a is active") {
			t.Errorf("%s", refusal.body)
		}
		w.post(t, "/v1/keys/a/revoke", `{"force":true}`).wants(t, 200)
		seed("n", "9").tells(t, `{"outcome":"seeded","kid":"n"}`)
		seed("n:", "9").refuses(t, 400, "invalid_kid")
		w.post(t, "/v1/keys/seed", `{"kid":"m","secret_hex":"00"}`).refuses(t, 400, "invalid_secret_hex")
	})
}

func TestW15_U105_rotate_row_by_row_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.wornKeys(t)
		rotate := func(kid, digit string) reply { return w.post(t, "/v1/keys/rotate", keyBody(kid, digit, 3_600_000)) }
		rotate("a", "1").tells(t, `{"outcome":"noop","kid":"a"}`)
		rotate("a", "").tells(t, `{"outcome":"noop","kid":"a"}`)
		rotate("a", "9").refuses(t, 409, "rotation_conflict")
		rotate("v", "9").refuses(t, 409, "rotation_conflict")
		rotate("e", "3").refuses(t, 409, "key_retired")
		rotate("r", "").refuses(t, 409, "key_retired")
		rotate("b", "4").wants(t, 200) // purges e, unless the sweep has
		rotate("v", "2").tells(t, `{"outcome":"rotated","previous_kid":"b","new_kid":"v","purged_count":0,"reactivated":true}`)
		rotate("a", "").tells(t, `{"outcome":"rotated","previous_kid":"v","new_kid":"a","purged_count":0,"reactivated":true}`)
		rotate("n", "6").tells(t, `{"outcome":"rotated","previous_kid":"a","new_kid":"n","purged_count":0,"reactivated":false}`)
		w.post(t, "/v1/keys/n/revoke", `{"force":true}`).wants(t, 200)
		rotate("m", "").tells(t, `{"outcome":"rotated","new_kid":"m","purged_count":0,"reactivated":false}`)
		w.post(t, "/v1/keys/rotate", `{"kid":"o","grace_ms":-1}`).refuses(t, 400, "invalid_grace_ms")
		w.post(t, "/v1/keys/rotate", `{"kid":"o","grace_ms":31536000001}`).refuses(t, 400, "invalid_grace_ms")
		w.post(t, "/v1/keys/rotate", `{"kid":"","secret_hex":"","grace_ms":-1}`).refuses(t, 400, "invalid_kid") // W13
	})
}

func TestW18_W20_U105_revoke_row_by_row_and_list_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.wornKeys(t)
		revoke := func(kid, body string) reply { return w.post(t, "/v1/keys/"+kid+"/revoke", body) }
		revoke("a", "").refuses(t, 409, "key_active")
		revoke("missing", "").refuses(t, 404, "key_not_found")
		revoke("a:b", "").refuses(t, 400, "invalid_kid")
		revoke("r", "").tells(t, `{"outcome":"noop","kid":"r"}`)
		list := w.get(t, "/v1/keys").wants(t, 200)
		if list.text(t, "current_kid") != "a" || list.text(t, "keys.0.kid") != "v" || list.text(t, "keys.0.state") != "verify_only" ||
			list.text(t, "keys.0.verify_until") == "" || list.text(t, "keys.1.kid") != "a" || list.field(t, "keys.1.verify_until") != nil || strings.Count(string(list.body), `"kid"`) != 2 {
			t.Errorf("%s", list.body)
		}
		revoke("v", "").tells(t, `{"outcome":"revoked","kid":"v"}`)
		revoke("a", `{"force":true}`).tells(t, `{"outcome":"revoked","kid":"a"}`)
		w.get(t, "/v1/keys").tells(t, `{"current_kid":"","keys":[]}`)
		retired := w.get(t, "/v1/keys?include_retired=true").wants(t, 200)
		if states, _ := retired.field(t, "keys").([]any); len(states) != 5 {
			t.Errorf("%s", retired.body)
		}
		ready := w.get(t, "/readyz").wants(t, 503) // U114
		if ready.field(t, "checks.signing_key.ok") != false || ready.text(t, "checks.signing_key.detail") != "no signing key is active" {
			t.Errorf("%s", ready.body)
		}
		for _, digit := range []string{"1", "2", "3", "5"} {
			for _, path := range []string{"/v1/keys?include_retired=true", "/v1/audit?limit=1000", "/v1/events?limit=1000", "/v1/admin/settings", "/metrics"} {
				if answer := w.get(t, path).wants(t, 200); strings.Contains(string(answer.body), signingSecret(digit)) {
					t.Errorf("%s shows a secret", path)
				}
			}
		}
		if strings.Contains(w.log.String(), "0123456789abcde") {
			t.Error("the log shows a secret")
		}
	})
}

func TestW21_U105_what_one_server_does_to_the_keys_another_sees_at_once(t *testing.T) {
	t.Parallel()
	a, b := twoServers(t)
	key := a.key(t, "*", "admin")
	at := func(w *world, path, body string) reply {
		return w.send(t, request{method: "POST", path: path, body: body, key: key})
	}
	list := func(w *world) string {
		return w.send(t, request{method: "GET", path: "/v1/keys", key: key}).wants(t, 200).text(t, "current_kid")
	}
	if list(a) == "" || list(a) != list(b) {
		t.Errorf("one has %s, the other %s", list(a), list(b))
	}
	at(a, "/v1/keys/rotate", keyBody("k1", "1", 3_600_000)).wants(t, 200)
	at(b, "/v1/keys/rotate", keyBody("k1", "1", 0)).tells(t, `{"outcome":"noop","kid":"k1"}`)
	at(b, "/v1/keys/rotate", keyBody("k2", "2", 3_600_000)).wants(t, 200)
	at(a, "/v1/keys/k1/revoke", "").wants(t, 200)
	at(b, "/v1/keys/rotate", keyBody("k1", "", 0)).refuses(t, 409, "key_retired")
	if list(a) != "k2" || list(b) != "k2" {
		t.Errorf("one has %s, the other %s", list(a), list(b))
	}
}

func TestU122_signing_keys_are_for_admins_of_all_namespaces(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	for _, caller := range []struct {
		namespace, role string
		status          int
	}{{"*", "admin", 200}, {"default", "admin", 403}, {"*", "operate", 403}} {
		key := w.key(t, caller.namespace, caller.role)
		if answer := w.send(t, request{method: "GET", path: "/v1/keys", key: key}); answer.status != caller.status {
			t.Errorf("%s of %s: %d %s", caller.role, caller.namespace, answer.status, answer.body)
		}
	}
}
