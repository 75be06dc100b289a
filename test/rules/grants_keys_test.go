package rules

import (
	"strings"
	"testing"
)

// grantKey is a grant key in its parts.
type grantKey struct{ prefix, tag, uuid, expires, kid, digits string }

// partsOf takes a good key apart.
func partsOf(t testing.TB, key string) grantKey {
	t.Helper()
	rest, ok := strings.CutPrefix(key, "pg:")
	tag, rest, split := strings.Cut(rest, "}:")
	parts := strings.Split(rest, ":")
	if !ok || !split || len(parts) != 4 {
		t.Fatalf("no key of a grant: %s", key)
	}
	return grantKey{"pg:", tag + "}", parts[0], parts[1], parts[2], parts[3]}
}

func (k grantKey) text() string {
	return k.prefix + k.tag + ":" + k.uuid + ":" + k.expires + ":" + k.kid + ":" + k.digits
}

// S30 by keys that are wrong in one way, and then in this way and all that are tested later.
func TestS30_a_key_is_tested_in_order_and_the_first_failure_is_the_answer(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g, other := w.granted(t, ""), w.job(t, "")
		good, before := partsOf(t, g.key), w.shown(t, g.id)
		wrongly := func(kid, uuid, digits string) func(k *grantKey) {
			return func(k *grantKey) { k.kid, k.uuid, k.digits = kid, uuid, digits }
		}
		absent, zeros := "0190f0c2-1111-7aaa-8bbb-0123456789ab", strings.Repeat("0", 64)
		all := wrongly("nokid", absent, zeros)
		steps := []struct {
			status int
			code   string
			wrong  map[string]func(k *grantKey)
			later  func(k *grantKey) // is wrong as well, and tested later
		}{
			{400, "grant_malformed", map[string]func(k *grantKey){
				"another prefix":        func(k *grantKey) { k.prefix = "PG:" },
				"the prefix of a store": func(k *grantKey) { k.prefix = "sq:" },
				"no number":             func(k *grantKey) { k.expires = "soon" },
				"no int64":              func(k *grantKey) { k.expires = "9223372036854775808" },
				"no decimal":            func(k *grantKey) { k.expires = "0x7fffffffffff" },
			}, func(k *grantKey) {
				all(k)
				if k.expires == good.expires {
					k.expires = "1"
				}
			}},
			{410, "grant_expired", map[string]func(k *grantKey){
				"over": func(k *grantKey) { k.expires = "1" }, "never begun": func(k *grantKey) { k.expires = "-5" },
			}, func(k *grantKey) { all(k); k.tag = "{nonsense}" }},
			{400, "grant_malformed", map[string]func(k *grantKey){
				"no tag":               func(k *grantKey) { k.tag = "fp:1" },
				"a tag with zeros":     func(k *grantKey) { k.tag = "{fp:0" + k.tag[4:] },
				"a tag of none":        func(k *grantKey) { k.tag = "{fp:256}" },
				"an upper-case UUID":   func(k *grantKey) { k.uuid = strings.ToUpper(k.uuid) },
				"a UUID without lines": func(k *grantKey) { k.uuid = strings.ReplaceAll(k.uuid, "-", "") },
			}, wrongly("nokid", good.uuid, zeros)},
			{401, "grant_unknown_kid", map[string]func(k *grantKey){
				"another kid": func(k *grantKey) { k.kid = "nokid" }, "no kid": func(k *grantKey) { k.kid = "" },
			}, func(k *grantKey) { k.uuid, k.digits = absent, zeros }},
			{404, "grant_unknown", map[string]func(k *grantKey){
				"no execution":      func(k *grantKey) { k.uuid = absent },
				"another partition": func(k *grantKey) { k.tag = "{fp:" + map[bool]string{true: "2", false: "1"}[k.tag == "{fp:1}"] + "}" },
				"no grant":          func(k *grantKey) { k.tag, k.uuid = w.tag(t, other), other },
			}, func(k *grantKey) { k.digits = zeros }},
			{403, "grant_signature_mismatch", map[string]func(k *grantKey){
				"other digits":      func(k *grantKey) { k.digits = zeros },
				"upper-case digits": func(k *grantKey) { k.digits = strings.ToUpper(k.digits) },
				"fewer digits":      func(k *grantKey) { k.digits = k.digits[:63] },
				"a longer promise":  func(k *grantKey) { k.expires += "0" },
			}, func(*grantKey) {}},
		}
		for i, step := range steps {
			for name, wrong := range step.wrong {
				alone, worse := good, good
				wrong(&alone)
				step.later(&worse)
				wrong(&worse)
				for _, key := range []string{alone.text(), worse.text()} {
					t.Run(step.code+" "+name, func(t *testing.T) {
						w.present(t, "return", key).refuses(t, step.status, step.code)
						w.present(t, "claim", key).refuses(t, step.status, step.code)
						refusal := w.present(t, "verify", key)
						w.leavesAlone(t, g.id, refusal, step.status, step.code, before)
						if strings.Contains(string(refusal.body), good.digits) {
							t.Errorf("step %d: the answer shows the key: %s", i, refusal.body)
						}
					})
				}
			}
		}
		for _, key := range []string{"", "pg:", "pg:a:b:c", "pg:a:" + good.expires + ":k", strings.TrimPrefix(g.key, "pg:")} {
			w.leavesAlone(t, g.id, w.present(t, "verify", key), 400, "grant_malformed", before)
		}
		w.present(t, "verify", g.key).wants(t, 200).shows(t, fields{"valid": true})
		w.redeem(t, g.key)
	})
}

func TestS30_a_key_that_is_signed_well_and_superseded_is_unknown(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		first := w.granted(t, "")
		w.present(t, "return", first.key).wants(t, 204)
		w.present(t, "verify", first.key).refuses(t, 404, "grant_unknown") // it holds no grant
		second := w.asksFor(t, first.id, `"grant_ttl_ms":50000`).given(t)
		if first.key == second.key {
			t.Fatal("the same key twice")
		}
		before := w.shown(t, first.id)
		forged := partsOf(t, first.key)
		forged.digits = strings.Repeat("f", 64)
		for _, call := range []string{"verify", "return", "claim"} {
			w.leavesAlone(t, first.id, w.present(t, call, first.key), 404, "grant_unknown", before)
			w.leavesAlone(t, first.id, w.present(t, call, forged.text()), 403, "grant_signature_mismatch", before)
		}
		w.redeem(t, second.key)
	})
}

func TestS30_every_byte_of_a_key_matters(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.granted(t, "")
		for i := range g.key {
			changed := []byte(g.key)
			if changed[i] ^= 1; changed[i] < ' ' || changed[i] == '"' || changed[i] == '\\' || changed[i] > '~' {
				changed[i] = '~'
			}
			if got := w.present(t, "claim", string(changed)); got.status < 400 || !strings.HasPrefix(got.text(t, "code"), "grant_") {
				t.Errorf("%s: %d %s", changed, got.status, got.body)
			}
		}
		w.redeem(t, g.key)
	})
}
