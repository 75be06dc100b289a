package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// masterKey is one that differs from those of other numbers.
func masterKey(n byte) keyring.MasterKey { return keyring.NewMasterKey([32]byte{0: n, 31: 1}) }

// begins opens an engine on the world's store with other keys and closes it again; err tells why it does not start.
func (w *world) begins(master keyring.MasterKey, seed *keyring.SeedCommand) error {
	w.t.Helper()
	e, err := engine.Open(w.t.Context(), w.store, engine.Config{MasterKey: master, SigningKey: seed, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		closeEngine(w.t, e)
	}
	return err
}

func TestW23_of_eight_engines_that_start_together_one_seeds(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		same(t, "an engine that only submits seeds nothing", w.keyStates(), "")
		w.cfg.NoTimers = false
		engines := make([]*engine.Engine, 8)
		var all sync.WaitGroup
		for i := range engines {
			st := w.openStore()
			all.Go(func() {
				e, err := engine.Open(w.t.Context(), st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Errorf("engine %d: %v", i, err)
					return
				}
				t.Cleanup(func() { closeEngine(t, e) })
				engines[i] = e
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		list := must(w.e.SigningKeys(w.ctx(), true))(t)
		if len(list.Keys) != 1 || !regexp.MustCompile(`^auto-[0-9a-f]{8}$`).MatchString(list.CurrentKid) {
			t.Fatalf("%+v", list)
		}
		of := token(t, engines[0])
		for i, e := range engines {
			same(t, fmt.Sprint("engine ", i), fault(t, e, of), "")
		}
		same(t, "events", len(w.events(engine.EventFilter{Kinds: []string{"key."}})), 1)
	})
}

func TestW23_a_configured_key_is_seeded_once_and_a_start_stops_at_another(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		w.restart()
		same(t, "states", w.keyStates(), "a active")
		same(t, "one change", storedKeys(t, w).Version, int64(1))
		other := refused(t, w.begins(keyring.MasterKey{}, seeding("a", 9)), base.CodeSeedConflict)
		conflict := refused(t, w.begins(keyring.MasterKey{}, seeding("b", 2)), base.CodeSeedConflict)
		if !strings.Contains(other.Message, "another secret") || !strings.Contains(conflict.Message, "the key a is active") {
			t.Errorf("%q, %q", other.Message, conflict.Message)
		}
		must(w.rotateKey("b", 2, 0))(t)
		ok(t, w.begins(keyring.MasterKey{}, seeding("a", 1))) // known, in whatever state
		must(w.revokeKey("a", false))(t)
		ok(t, w.begins(keyring.MasterKey{}, seeding("a", 9))) // and its secret is no longer held
		same(t, "states", w.keyStates(), "a revoked, b active")
	})
}

func TestW23_a_key_that_was_revoked_by_force_is_not_replaced_by_itself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		kid := must(w.e.SigningKeys(w.ctx(), false))(t).CurrentKid
		must(w.revokeKey(kid, true))(t)
		w.restart()
		same(t, "states", w.keyStates(), kid+" revoked")
	})
}

func TestW24_clear_secrets_are_sealed_at_the_next_start_with_a_master_key(t *testing.T) {
	t.Parallel()
	onStoresWith(t, withKey, func(t *testing.T, w *world) {
		must(w.rotateKey("b", 2, base.Hour))(t)
		of := token(t, w.e)
		before := storedKeys(t, w)
		same(t, "in clear", []any{before.Clear(), before.Keys[0].Secret.Sealed()}, []any{true, false})
		closeEngine(t, w.e)
		w.cfg.MasterKey = masterKey(1)
		w.e = w.openEngine(w.store)
		sealed := storedKeys(t, w)
		same(t, "sealed", []any{sealed.Clear(), sealed.Version, sealed.Keys[0].Secret.Sealed(), sealed.Keys[1].Secret.Sealed()}, []any{false, before.Version + 1, true, true})
		same(t, "the same secrets", fault(t, w.e, of), "")
		must(w.rotateKey("c", 3, base.Hour))(t)
		same(t, "a new one is sealed too", storedKeys(t, w).Clear(), false)
		w.restart()
		same(t, "sealed once", storedKeys(t, w).Version, sealed.Version+1)
	})
}

func TestW24_a_start_without_the_master_key_or_with_a_wrong_one_fails(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1), MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		refused(t, w.begins(keyring.MasterKey{}, nil), base.CodeMasterKeyRequired)
		refused(t, w.begins(masterKey(2), nil), base.CodeMasterKeyMismatch)
		ok(t, w.begins(masterKey(1), nil))
		closeEngine(t, w.e)
		for master, code := range map[keyring.MasterKey]base.Code{{}: base.CodeMasterKeyRequired, masterKey(2): base.CodeMasterKeyMismatch} {
			w.cfg = engine.Config{MasterKey: master, NoTimers: true}
			e := w.openEngine(w.store)
			must(e.Submit(w.ctx(), client, core.Submission{Namespace: "default", Kind: "k"}))(t) // needs no secret
			_, _, err := ringOf(w.ctx(), e)
			refused(t, err, code)
			_, err = e.RotateSigningKey(w.ctx(), admin, engine.Rotation{Kid: "b"}, engine.AdminAction{})
			refused(t, err, code) // else its secret would be kept in another way than the others
			says(t, e, lenient(), "master_key", engine.CheckFail, string(code))
			closeEngine(t, e)
		}
	})
}

func TestW24_a_rewrap_exchanges_the_master_key_in_one_transaction(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1), MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		must(w.rotateKey("b", 2, base.Hour))(t)
		must(w.rotateKey("c", 3, base.Hour))(t)
		must(w.revokeKey("a", false))(t)
		of, before := token(t, w.e), storedKeys(t, w)
		same(t, "secrets", must(w.e.RewrapSigningKeys(w.ctx(), admin, masterKey(2), engine.AdminAction{Reason: "yearly"}))(t), 3) // two keys, and that of the audit log
		same(t, "versions", storedKeys(t, w).Version, before.Version+1)
		same(t, "this engine goes on", fault(t, w.e, of), "")
		must(w.rotateKey("d", 4, base.Hour))(t)
		refused(t, w.begins(masterKey(1), nil), base.CodeMasterKeyMismatch)
		ok(t, w.begins(masterKey(2), nil))
		row := w.told(admin, core.AuditFilter{Namespace: "*", Action: "rewrap_signing_keys"})[0]
		same(t, "audit", []string{row.Entity, row.EntityID, row.Reason}, []string{"signing_key", "*", "yearly"})
	})
}

func TestW24_a_repeated_rewrap_goes_on_with_the_new_master_key_or_says_that_it_is_none(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1), MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		rewrap := func(n byte, key string) error {
			_, err := w.e.RewrapSigningKeys(w.ctx(), admin, masterKey(n), engine.AdminAction{RequestKey: key})
			return err
		}
		ok(t, rewrap(2, "k"))
		version := storedKeys(t, w).Version
		closeEngine(t, w.e)
		w.cfg = engine.Config{MasterKey: masterKey(1), NoTimers: true} // as if it had not learned that the first was done
		w.e = w.openEngine(w.store)
		ok(t, rewrap(2, "k"))
		token(t, w.e)
		same(t, "done once", storedKeys(t, w).Version, version)
		refused(t, rewrap(3, "k"), base.CodeMasterKeyMismatch)
		token(t, w.e)
	})
}

func TestW24_an_engine_with_the_former_master_key_signs_no_more_after_a_rewrap(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{SigningKey: seeding("a", 1), MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		other := w.another()
		token(t, other)
		must(w.e.RewrapSigningKeys(w.ctx(), admin, masterKey(2), engine.AdminAction{}))(t)
		_, _, err := ringOf(w.ctx(), other)
		refused(t, err, base.CodeMasterKeyMismatch)
		_, err = other.RewrapSigningKeys(w.ctx(), admin, masterKey(3), engine.AdminAction{})
		refused(t, err, base.CodeMasterKeyMismatch)
	})
}

func TestU165_the_doctor_tells_of_signing_and_master_keys(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1)}, func(t *testing.T, w *world) {
		says(t, w.e, lenient(), "signing_key", engine.CheckOK, "the key a signs")
		says(t, w.e, lenient(), "master_key", engine.CheckWarn, "in clear")
		must(w.revokeKey("a", true))(t)
		says(t, w.e, lenient(), "signing_key", engine.CheckFail, "no signing key is active")
		must(w.seedKey("b", 2))(t)
		closeEngine(t, w.e)
		w.cfg = engine.Config{MasterKey: masterKey(1), NoTimers: true}
		w.e = w.openEngine(w.store)
		says(t, w.e, lenient(), "master_key", engine.CheckWarn, "some secrets")
		w.cfg.NoTimers = false
		closeEngine(t, w.e)
		w.e = w.openEngine(w.store)
		says(t, w.e, lenient(), "master_key", engine.CheckOK, "sealed")
	})
	onStoresWith(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		says(t, w.e, lenient(), "signing_key", engine.CheckWarn, "no signing key yet")
	})
}

// dump is all that the database of the world holds: of a file its bytes, else every row as text.
func (w *world) dump() string {
	w.t.Helper()
	if w.path != "" {
		var all []byte
		for _, suffix := range []string{"", "-wal"} {
			text, err := os.ReadFile(w.path + suffix)
			if err != nil && !os.IsNotExist(err) {
				w.t.Fatal(err)
			}
			all = append(all, text...)
		}
		return string(all)
	}
	conn := must(pgx.Connect(w.ctx(), w.url))(w.t)
	defer func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) }()
	tables := must(conn.Query(w.ctx(), `select format('%I.%I', table_schema, table_name) from information_schema.tables
		where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`))(w.t)
	var all strings.Builder
	for _, table := range must(pgx.CollectRows(tables, pgx.RowTo[string]))(w.t) {
		rows := must(conn.Query(w.ctx(), "select t::text from "+table+" t"))(w.t)
		for _, row := range must(pgx.CollectRows(rows, pgx.RowTo[string]))(w.t) {
			all.WriteString(row)
		}
	}
	return all.String()
}

func TestWI6_with_a_master_key_no_secret_is_in_the_database(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	var mu sync.Mutex
	logger := slog.New(slog.NewTextHandler(lockedWriter{&mu, &logs}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	onStoresWith(t, engine.Config{SigningKey: seeding("a", 1), MasterKey: masterKey(1), Logger: logger}, func(t *testing.T, w *world) {
		must(w.e.RotateSigningKey(w.ctx(), admin, engine.Rotation{Kid: "b", SecretHex: ptr(keyHex(2))}, engine.AdminAction{Reason: "r", RequestKey: "k"}))(t)
		_, err := w.seedKey("b", 3)
		ok(t, err)
		_, err = w.rotateKey("b", 3, 0)
		refusal := refused(t, err, base.CodeRotationConflict)
		stored := w.dump()
		if kid := "signing_keys"; !strings.Contains(stored, kid) && !strings.Contains(stored, fmt.Sprintf("%x", kid)) {
			t.Errorf("the dump of %d bytes does not hold the keys", len(stored))
		}
		mu.Lock()
		logged := logs.String()
		mu.Unlock()
		for place, text := range map[string]string{"the database": stored, "the log": logged, "a refusal": fmt.Sprintf("%+v %v", refusal, refusal.Details)} {
			for n := byte(1); n <= 3; n++ {
				raw := must(keyring.ParseStoredSecret("clear:" + keyHex(n)))(t)
				for _, needle := range []string{keyHex(n), fmt.Sprintf("%x", keyHex(n)), fmt.Sprintf("%x", raw.Stored()), string(must(raw.Open(keyring.MasterKey{}, ""))(t))} {
					if strings.Contains(text, needle) {
						t.Errorf("secret %d is in %s", n, place)
					}
				}
			}
		}
	})
}

// lockedWriter lets several loggers write to one buffer.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}
