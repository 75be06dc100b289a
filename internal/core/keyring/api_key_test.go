package keyring

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// drawnSecret is a secret of drawn random bytes.
func drawnSecret(t *rapid.T) APISecret {
	return MintAPISecret([40]byte(rapid.SliceOfN(rapid.Byte(), 40, 40).Draw(t, "random")))
}

// secretNumber is a secret that differs from those of other numbers.
func secretNumber(n byte) APISecret { return MintAPISecret([40]byte{7: n, 39: n}) }

func keySettings() APIKeySettings {
	return APIKeySettings{Name: "ci", Roles: []string{"submit", "read"}, Namespaces: []string{"b", "a", "a"}}
}

// madeKey is a key with that secret, made at 1000.
func madeKey(t *testing.T, secret APISecret) *APIKey {
	t.Helper()
	s := keySettings()
	expect(t, s.Normalize(), "", "")
	k, err := NewAPIKey(1000, "me", secret, s)
	expect(t, err, "", "")
	return &k
}

func TestU119_a_secret_has_its_form_and_is_read_back(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^ffk_[a-z2-7]{12}_[A-Za-z0-9_-]{43}$`)
	testseed.Check(t, func(t *rapid.T) {
		secret := drawnSecret(t)
		read, err := ParseAPISecret(secret.Reveal())
		if !form.MatchString(secret.Reveal()) || err != nil || read != secret {
			t.Fatalf("%q is read as %v, %v", secret.Reveal(), read, err)
		}
		for _, shown := range []string{secret.String(), fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret)} {
			if strings.Contains(shown, secret.Reveal()[17:]) {
				t.Fatalf("%q shows the secret", shown)
			}
		}
	})
}

func TestU24_what_is_no_key_answers_as_a_wrong_key(t *testing.T) {
	t.Parallel()
	good := secretNumber(1).Reveal()
	for _, text := range []string{
		"x", "ffk_", good[:59], good + "A", "FFK" + good[3:], strings.ToUpper(good[:16]) + good[16:], good[:16] + "-" + good[17:],
		good[:4] + "0" + good[5:], good[:59] + "B", good[:30] + "=" + good[31:],
	} {
		_, err := ParseAPISecret(text)
		expect(t, err, base.CodeInvalidCredentials, "")
	}
	var unknown *APIKey
	wrong := asError(t, madeKey(t, secretNumber(1)).Accept(2000, secretNumber(2)))
	none := asError(t, unknown.Accept(2000, secretNumber(1)))
	if wrong.Code != base.CodeInvalidCredentials || wrong.Error() != none.Error() || len(wrong.Details) != 0 {
		t.Errorf("a wrong secret answers %v, an unknown key %v", wrong, none)
	}
}

func TestU104_settings_are_brought_into_order_and_checked(t *testing.T) {
	t.Parallel()
	k := madeKey(t, secretNumber(1))
	if fmt.Sprint(k.Roles, k.Namespaces) != "[read submit] [a b]" || k.Revision != 1 || k.CreatedBy != "me" || k.CreatedAt != 1000 {
		t.Errorf("made: %+v", k)
	}
	everywhere := keySettings()
	everywhere.Namespaces = []string{"a", "*"}
	expect(t, everywhere.Normalize(), "", "")
	if fmt.Sprint(everywhere.Namespaces) != "[*]" || !everywhere.Everywhere() {
		t.Errorf("namespaces: %v", everywhere.Namespaces)
	}
	for field, spoil := range map[string]func(*APIKeySettings){
		"name":                    func(s *APIKeySettings) { s.Name = "" },
		"roles":                   func(s *APIKeySettings) { s.Roles = nil },
		"roles[1]":                func(s *APIKeySettings) { s.Roles = []string{"read", "root"} },
		"namespaces":              func(s *APIKeySettings) { s.Namespaces = nil },
		"namespaces[0]":           func(s *APIKeySettings) { s.Namespaces = []string{"a b"} },
		"lanes[0]":                func(s *APIKeySettings) { s.Lanes = []string{""} },
		"max_requests_per_second": func(s *APIKeySettings) { s.MaxRequestsPerSecond = -1 },
		"max_in_flight":           func(s *APIKeySettings) { s.MaxInFlight = 1_000_001 },
	} {
		s := keySettings()
		spoil(&s)
		expect(t, s.Normalize(), base.CodeInvalidArgument, field)
	}
	ended := keySettings()
	ended.ExpiresAt = 999
	_, err := NewAPIKey(1000, "me", secretNumber(1), ended)
	expect(t, err, base.CodeInvalidArgument, "expires_at")
}

func TestU104_an_expired_or_revoked_key_tells_so_to_its_holder_alone(t *testing.T) {
	t.Parallel()
	secret := secretNumber(1)
	k := madeKey(t, secret)
	expect(t, k.Accept(5000, secret), "", "")
	end := base.Time(6000)
	expect(t, k.Change(5000, APIKeyPatch{ExpiresAt: &end}), "", "")
	expect(t, k.Accept(5999, secret), "", "")
	expect(t, k.Accept(6000, secret), base.CodeAPIKeyExpired, "")
	expect(t, k.Accept(6000, secretNumber(2)), base.CodeInvalidCredentials, "")
	if !k.Revoke(7000) || k.Revoke(8000) || k.RevokedAt != 7000 || k.Revision != 3 {
		t.Errorf("revoked: %+v", k)
	}
	expect(t, k.Accept(8000, secret), base.CodeAPIKeyRevoked, "")
	expect(t, k.Accept(8000, secretNumber(2)), base.CodeInvalidCredentials, "")
	expect(t, k.Change(8000, APIKeyPatch{}), base.CodeKeyRetired, "")
	expect(t, k.Rotate(8000, secretNumber(3), 0), base.CodeKeyRetired, "")
}

func TestU104_after_a_rotation_the_old_secret_works_until_the_overlap_ends(t *testing.T) {
	t.Parallel()
	first, second, third := secretNumber(1), secretNumber(2), secretNumber(3)
	k := madeKey(t, first)
	expect(t, k.Rotate(2000, second, -1), base.CodeInvalidArgument, "overlap_ms")
	expect(t, k.Rotate(2000, second, maxOverlap+1), base.CodeInvalidArgument, "overlap_ms")
	expect(t, k.Rotate(2000, second, 500), "", "")
	expect(t, k.Accept(2499, first), "", "")
	expect(t, k.Accept(2500, first), base.CodeInvalidCredentials, "")
	expect(t, k.Accept(9000, second), "", "")
	expect(t, k.Rotate(2400, third, 0), "", "")
	expect(t, k.Accept(2400, first), base.CodeInvalidCredentials, "")
	expect(t, k.Accept(2400, second), base.CodeInvalidCredentials, "")
	expect(t, k.Accept(2400, third), "", "")
	if k.Shown().Hash != nil || k.Shown().OldHash != nil || k.Hash == nil {
		t.Error("a key is shown with its digests, or lost them by being shown")
	}
}

func TestU119_the_last_use_is_written_at_most_once_a_minute(t *testing.T) {
	t.Parallel()
	k := madeKey(t, secretNumber(1))
	for _, step := range []struct {
		at    base.Time
		write bool
	}{{2000, true}, {61_999, false}, {62_000, true}, {62_001, false}} {
		if k.Used(step.at) != step.write {
			t.Errorf("at %d: written %v", step.at, !step.write)
		}
	}
}
