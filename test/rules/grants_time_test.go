package rules

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// secretHex is the secret of the vector in S28.
const secretHex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// signGrant makes the digits of a grant key, as W26 and S28 say it.
func signGrant(t testing.TB, kid, tag, uuid, worker, instance, expires string) string {
	t.Helper()
	secret, err := hex.DecodeString(secretHex)
	if err != nil {
		t.Fatal(err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "flowfabric/claim_grant", 32)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	for _, field := range []string{"ff1", "claim_grant", kid, tag, uuid, worker, instance, expires} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		mac.Write([]byte(field))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func TestS28_the_vector_of_the_signature(t *testing.T) {
	t.Parallel()
	got := signGrant(t, "k1", "{fp:7}", "0190f0c2-1111-7aaa-8bbb-0123456789ab", "render", "render-1", "1767225605000")
	if got != "5cd0d39b32d809f75e8b6f7d5a3f899252a6687886d2857b0a8ec448b11ddce1" {
		t.Errorf("%s", got)
	}
}

func TestS28_S29_the_active_key_signs_and_without_one_nothing_is_looked_for(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, _ *clock.Manual) {
		own := w.get(t, "/v1/keys").wants(t, 200).text(t, "current_kid")
		w.post(t, "/v1/keys/"+own+"/revoke", `{"force":true}`).wants(t, 200)
		id := w.job(t, "")
		before := w.shown(t, id)
		w.leavesAlone(t, id, w.asks(t, ""), 503, "signing_key_missing", before)
		w.leavesAlone(t, id, w.asksFor(t, id, ""), 503, "signing_key_missing", before)
		w.asksFor(t, "0190f0c2-1111-7aaa-8bbb-0123456789ab", "").refuses(t, 503, "signing_key_missing")
		w.post(t, "/v1/work/grants", `{`+w.me()+`,"lanes":["empty"],"wait_ms":60000}`).refuses(t, 503, "signing_key_missing")
		if none := w.get(t, "/v1/workers?state=all").wants(t, 200); len(none.items(t, "items")) != 0 {
			t.Errorf("somebody was registered: %s", none.body)
		}
		w.complete(t, w.takes(t, id), `1`)                       // direct claims need no key
		w.post(t, at(w.job(t, ""))+"/claim", `{}`).wants(t, 200) // nor does an operator (S35)

		w.post(t, "/v1/keys/rotate", `{"kid":"k1","secret_hex":"`+secretHex+`"}`).wants(t, 200)
		g := w.granted(t, "")
		k := partsOf(t, g.key)
		expires := strconv.FormatInt(g.moment(t, "grants.0.expires_at").UnixMilli(), 10)
		if want := signGrant(t, "k1", k.tag, k.uuid, "w", w.namespace, expires); k.digits != want || k.kid != "k1" {
			t.Errorf("%s, want the digits %s", g.key, want)
		}
		w.keepsNoKey(t, g)
		w.redeem(t, g.key)
	})
}

// keepsNoKey checks that a copy of the store has the hash of a grant key, and nothing of the key (S29). A store of which the server makes
// no copy is not looked at.
func (w *world) keepsNoKey(t testing.TB, g promise) {
	t.Helper()
	store := w.get(t, "/v1/info").wants(t, 200).text(t, "store.kind")
	copied := w.post(t, "/v1/admin/backup", "")
	if store != "sqlite" {
		copied.wants(t, 501)
		return
	}
	copied.wants(t, 200)
	sum := sha256.Sum256([]byte(g.key))
	if !bytes.Contains(copied.body, sum[:]) {
		t.Error("the hash of the key is not kept")
	}
	digits := partsOf(t, g.key).digits
	raw, err := hex.DecodeString(digits)
	if err != nil || bytes.Contains(copied.body, []byte(digits)) || bytes.Contains(copied.body, raw) {
		t.Errorf("the key is kept: %v", err)
	}
}

func TestS30_S31_S32_a_grant_ends_at_its_moment_and_its_kid_verifies_while_its_grace_lasts(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		pass := func(ms int) { hand.TurnTo(hand.Now().Add(time.Duration(ms) * time.Millisecond)) }
		q := w.limit(t, "q", `{"rate_limit":9,"concurrency_limit":1}`)
		id := w.job(t, attached(q))
		g := w.asks(t, "").given(t) // for 5 seconds
		pass(4999)
		w.present(t, "verify", g.key).wants(t, 200)
		w.inUse(t, q, 1, 1, 0)
		pass(1)
		for _, call := range []string{"verify", "return", "claim"} {
			w.present(t, call, g.key).refuses(t, 410, "grant_expired")
		}
		comes(t, "it is ready again", func() bool { return w.get(t, at(id)).text(t, "status") == "ready" })
		w.inUse(t, q, 0, 0, 0) // S32: at once, and the admission with it
		if told := w.lastTold(t, id, "grant.ended"); told["cause"] != "expired" {
			t.Errorf("told %v", told)
		}

		g = w.asks(t, "").given(t)
		lease := w.redeem(t, g.key)
		pass(6000) // S31 (0): the lease again, though the grant would be over
		if again := w.redeem(t, g.key); again.fence != lease.fence {
			t.Errorf("another lease: %s", again.body)
		}
		w.presentAs(t, "claim", g.key, w.thief()).refuses(t, 410, "grant_expired")
		w.complete(t, lease, `1`)
		w.present(t, "claim", g.key).refuses(t, 410, "grant_expired")

		g = w.granted(t, attached(q)) // for a minute
		w.post(t, "/v1/keys/rotate", `{"kid":"next","grace_ms":10000}`).wants(t, 200)
		if fresh := w.granted(t, ""); partsOf(t, fresh.key).kid != "next" {
			t.Errorf("S29: signed by %s", fresh.key)
		}
		pass(10_000)
		w.present(t, "verify", g.key).wants(t, 200) // the last moment of its grace
		pass(1)
		for _, call := range []string{"verify", "return", "claim"} {
			w.present(t, call, g.key).refuses(t, 401, "grant_unknown_kid")
		}
		w.inUse(t, q, 1, 2, 0) // and yet it is out
	})
}

func TestS32_a_deadline_and_a_late_command_void_the_grant(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		void := func(ms int, status string, by func(late task)) {
			t.Helper()
			late := w.started(t, attached(q)+`,"deadline_at":"`+hand.Now().Add(40*time.Second).Format(time.RFC3339)+`"`)
			hand.TurnTo(hand.Now().Add(30 * time.Second)) // its lease lapses
			g := w.asksFor(t, late.id, `"grant_ttl_ms":60000`).given(t)
			hand.TurnTo(hand.Now().Add(time.Duration(ms) * time.Millisecond))
			by(late)
			for _, call := range []string{"verify", "return", "claim"} {
				w.present(t, call, g.key).refuses(t, 404, "grant_unknown")
			}
			comes(t, "it is over", func() bool { return w.get(t, at(late.id)).text(t, "status") == status })
			w.inUse(t, q, 0, 0, 0)
		}
		void(10_000, "expired", func(task) {})
		void(0, "succeeded", func(late task) { w.complete(t, late, `1`) })
	})
}
