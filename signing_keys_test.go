package flowfabric_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// Secrets of signing keys, and master keys.
const (
	secretOne = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	secretTwo = "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	masterOne = "200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	masterTwo = "MAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// opens opens a store and closes it again; err tells why it does not open.
func opens(t *testing.T, address string, cfg flowfabric.EngineConfig) error {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address, embedded.Config{EngineConfig: cfg})
	if err != nil {
		return err
	}
	return client.Close(context.WithoutCancel(t.Context()))
}

func TestU105_signing_keys_are_administered_by_every_client(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, keys := inTime(t), w.Admin().SigningKeys()
		own := must[api.SigningKeyList](t)(keys.List(ctx))
		if !strings.HasPrefix(own.CurrentKid, "auto-") || len(own.Keys) != 1 || own.Keys[0].State != api.KeyActive {
			t.Errorf("begins with %+v", own)
		}
		one, two, hour := secretOne, secretTwo, time.Hour
		rotated := must[api.RotatedKey](t)(keys.Rotate(ctx, "a", ops.RotateKeyOptions{SecretHex: &one, Grace: &hour}))
		if want := (api.RotatedKey{Outcome: api.OutcomeRotated, NewKid: "a", PreviousKid: own.CurrentKid}); rotated != want {
			t.Errorf("%+v, want %+v", rotated, want)
		}
		again := must[api.RotatedKey](t)(keys.Rotate(ctx, "a"))
		if want := (api.RotatedKey{Outcome: api.OutcomeNoop, Kid: "a"}); again != want {
			t.Errorf("%+v, want %+v", again, want)
		}
		seeded := must[api.SeededKey](t)(keys.Seed(ctx, "a", secretOne, ops.AdminAction{Reason: "again"}))
		if want := (api.SeededKey{Outcome: api.OutcomeAlreadySeeded, Kid: "a", SameSecret: true, State: api.KeyActive}); seeded != want {
			t.Errorf("%+v, want %+v", seeded, want)
		}
		for code, err := range map[string]error{
			"rotation_conflict":  second(keys.Rotate(ctx, "a", ops.RotateKeyOptions{SecretHex: &two})),
			"seed_conflict":      second(keys.Seed(ctx, "b", secretTwo)),
			"invalid_kid":        second(keys.Seed(ctx, "a b", secretTwo)),
			"invalid_secret_hex": second(keys.Seed(ctx, "b", "00")),
			"key_active":         second(keys.Revoke(ctx, "a")),
			"key_not_found":      second(keys.Revoke(ctx, "missing")),
		} {
			if flowfabric.CodeOf(err) != code {
				t.Errorf("%v, want %s", err, code)
			}
		}
		year := 366 * 24 * time.Hour
		if _, err := keys.Rotate(ctx, "b", ops.RotateKeyOptions{Grace: &year}); flowfabric.CodeOf(err) != "invalid_grace_ms" {
			t.Errorf("a grace of over a year: %v", err)
		}
		revoked := must[api.RevokedKey](t)(keys.Revoke(ctx, own.CurrentKid, ops.RevokeKeyOptions{AdminAction: ops.AdminAction{Reason: "old"}}))
		if want := (api.RevokedKey{Outcome: api.OutcomeRevoked, Kid: own.CurrentKid}); revoked != want {
			t.Errorf("%+v, want %+v", revoked, want)
		}
		if _, err := keys.Rotate(ctx, own.CurrentKid); flowfabric.CodeOf(err) != "key_retired" {
			t.Errorf("a revoked key: %v", err)
		}
		must[api.RevokedKey](t)(keys.Revoke(ctx, "a", ops.RevokeKeyOptions{Force: true}))
		must[api.SeededKey](t)(keys.Seed(ctx, "b", secretTwo))
		all := must[api.SigningKeyList](t)(keys.List(ctx, ops.ListKeysOptions{Retired: true}))
		if all.CurrentKid != "b" || len(all.Keys) != 3 || all.Keys[1].State != api.KeyRevoked || all.Keys[1].RevokedAt.IsZero() {
			t.Errorf("%+v", all)
		}
	})
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

func TestW23_W24_keys_of_the_configuration_stop_a_start_that_they_do_not_fit(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			for code, cfg := range map[string]flowfabric.EngineConfig{
				"invalid_argument":   {MasterKey: "short"},
				"invalid_kid":        {SigningSecret: secretOne},
				"invalid_secret_hex": {SigningKid: "a"},
			} {
				if err := opens(t, url, cfg); flowfabric.CodeOf(err) != code {
					t.Errorf("%v, want %s", err, code)
				}
			}
			first := flowfabric.EngineConfig{MasterKey: masterOne, SigningKid: "a", SigningSecret: secretOne}
			if err := opens(t, url, first); err != nil {
				t.Fatal(err)
			}
			for code, cfg := range map[string]flowfabric.EngineConfig{
				"":                    {MasterKey: masterOne},
				"master_key_required": {},
				"master_key_mismatch": {MasterKey: masterTwo},
				"seed_conflict":       {MasterKey: masterOne, SigningKid: "a", SigningSecret: secretTwo},
			} {
				if err := opens(t, url, cfg); flowfabric.CodeOf(err) != code {
					t.Errorf("%v, want %s", err, code)
				}
			}
			if err := opens(t, url, flowfabric.EngineConfig{NoEngine: true}); err != nil {
				t.Errorf("a client that only submits: %v", err)
			}
		})
	}
}

func TestW24_a_program_exchanges_its_master_key_and_a_server_is_never_sent_one(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			client := must[*flowfabric.Client](t)(embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), url,
				embedded.Config{EngineConfig: flowfabric.EngineConfig{MasterKey: masterOne, Logger: slog.New(slog.DiscardHandler)}}))
			keys := client.Admin().SigningKeys()
			if n := must[int](t)(keys.Rewrap(inTime(t), masterTwo, ops.AdminAction{Reason: "yearly"})); n != 2 { // and the key of the audit log
				t.Errorf("%d secrets", n)
			}
			must[api.RotatedKey](t)(keys.Rotate(inTime(t), "b"))
			if _, err := keys.Rewrap(inTime(t), ""); flowfabric.CodeOf(err) != "invalid_argument" {
				t.Errorf("no master key: %v", err)
			}
			if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := opens(t, url, flowfabric.EngineConfig{MasterKey: masterOne}); flowfabric.CodeOf(err) != "master_key_mismatch" {
				t.Errorf("the former master key: %v", err)
			}
			if err := opens(t, url, flowfabric.EngineConfig{MasterKey: masterTwo}); err != nil {
				t.Error(err)
			}
		})
	}
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{}).overHTTP(t)
	if _, err := w.Admin().SigningKeys().Rewrap(inTime(t), masterTwo); flowfabric.CodeOf(err) != "not_implemented" {
		t.Errorf("over HTTP: %v", err)
	}
}
