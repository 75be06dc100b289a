package commands

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// signingKeys returns the commands for the keys that sign tokens (U105).
func (s *session) signingKeys() *cobra.Command {
	return group("keys", "Keys that sign tokens", s.signingList(), s.signingSeed(), s.signingRotate(), s.signingRevoke(), s.signingRewrap())
}

func (s *session) signingList() *cobra.Command {
	all := false
	cmd := s.command("list", "List signing keys that are still valid", `
flowfabric keys list
flowfabric keys list --all
flowfabric keys list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		list, err := c.Admin().SigningKeys().List(ctx, ops.ListKeysOptions{Retired: all})
		if err != nil {
			return err
		}
		return show.All(s.printer, s.signingView(), list.Keys)
	})
	cmd.Flags().BoolVar(&all, "all", false, "also expired and revoked keys")
	return cmd
}

func (s *session) signingView() show.View[api.SigningKey] {
	p := s.printer
	type x = api.SigningKey
	return show.View[x]{ID: func(k x) string { return k.Kid }, None: "no signing keys", Columns: []show.Column[x]{
		{Name: "KID", Text: func(k x) string { return k.Kid }},
		{Name: "STATE", Text: func(k x) string { return k.State }},
		{Name: "CREATED", Text: func(k x) string { return p.Time(k.CreatedAt) }},
		{Name: "VERIFIES UNTIL", Text: func(k x) string { return p.Time(k.VerifyUntil) }},
		{Name: "REVOKED", Text: func(k x) string { return p.Time(k.RevokedAt) }},
	}}
}

const secretUsage = "its secret, 64 hexadecimal digits: @FILE, or - for standard input; random if absent" //nolint:gosec // G101: it is a help text

func (s *session) signingSeed() *cobra.Command {
	secret, reason := "", ""
	cmd := s.command("seed KID", "Install the first signing key", `
flowfabric keys seed main
flowfabric keys seed main --secret-hex @new.hex
flowfabric keys seed main --reason 'the first one'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		digits, err := s.secretHex(secret)
		if err != nil {
			return err
		}
		if digits == nil {
			drawn := randomHex(32)
			digits = &drawn
		}
		result, err := c.Admin().SigningKeys().Seed(ctx, args[0], *digits, ops.AdminAction{Reason: reason})
		if err != nil {
			return err
		}
		return show.One(s.printer, keyOutcome(func(r api.SeededKey) (string, string) { return r.Kid, r.Outcome },
			show.Column[api.SeededKey]{Name: "STATE", Text: func(r api.SeededKey) string { return r.State }}), result)
	})
	cmd.Flags().StringVar(&secret, "secret-hex", "", secretUsage)
	auditReason(cmd, &reason)
	return cmd
}

func (s *session) signingRotate() *cobra.Command {
	secret, reason := "", ""
	var grace time.Duration
	var cmd *cobra.Command
	cmd = s.command("rotate [KID]", "Sign with a new or another valid key; the previous one verifies for a while", `
flowfabric keys rotate
flowfabric keys rotate autumn --grace 168h
flowfabric keys rotate autumn --secret-hex @new.hex --reason 'twice a year'
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		digits, err := s.secretHex(secret)
		if err != nil {
			return err
		}
		how := ops.RotateKeyOptions{AdminAction: ops.AdminAction{Reason: reason}, SecretHex: digits, Grace: changed(cmd.Flags(), "grace", grace)}
		kid := "key-" + randomHex(4)
		if len(args) == 1 {
			kid = args[0]
		}
		result, err := c.Admin().SigningKeys().Rotate(ctx, kid, how)
		if err != nil {
			return err
		}
		type x = api.RotatedKey
		return show.One(s.printer, keyOutcome(func(r x) (string, string) { return cmp.Or(r.NewKid, r.Kid), r.Outcome },
			show.Column[x]{Name: "BEFORE", Text: func(r x) string { return r.PreviousKid }},
			show.Column[x]{Name: "PURGED", Text: func(r x) string { return strconv.Itoa(r.PurgedCount) }}), result)
	})
	cmd.Flags().StringVar(&secret, "secret-hex", "", secretUsage)
	cmd.Flags().DurationVar(&grace, "grace", 0, "how long the previous key verifies; default: the server's setting key-grace")
	auditReason(cmd, &reason)
	return cmd
}

func (s *session) signingRevoke() *cobra.Command {
	force, reason := false, ""
	cmd := s.command("revoke KID", "Revoke a signing key and every token signed with it", `
flowfabric keys revoke spring
flowfabric keys revoke spring --reason 'it was in a log'
flowfabric keys revoke autumn --force
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		how := ops.RevokeKeyOptions{AdminAction: ops.AdminAction{Reason: reason}, Force: force}
		result, err := c.Admin().SigningKeys().Revoke(ctx, args[0], how)
		if err != nil {
			return err
		}
		return show.One(s.printer, keyOutcome(func(r api.RevokedKey) (string, string) { return r.Kid, r.Outcome }), result)
	})
	cmd.Flags().BoolVar(&force, "force", false, "even the active one: signing then fails until the next seed or rotation")
	auditReason(cmd, &reason)
	return cmd
}

// signingRewrap replaces the master key directly in the store (W24), because a master key is never sent to a server.
func (s *session) signingRewrap() *cobra.Command {
	next, reason := "", ""
	cmd := &cobra.Command{
		Use: "rewrap", Short: "Encrypt the stored secrets with another master key; start servers with it afterwards", Args: counted(cobra.NoArgs),
		Example: examples(`
flowfabric keys rewrap --store sqlite:ff.db --master-key-file old.key --new-master-key @new.key
flowfabric keys rewrap --store sqlite:ff.db --new-master-key @new.key --reason 'the first master key'
flowfabric keys rewrap --store sqlite:ff.db --new-master-key @new.key --timeout 30s
`),
	}
	storeFlags(cmd)
	cmd.Flags().StringVar(&next, "new-master-key", "", "32 bytes as hexadecimal digits or base64: @FILE, or - for standard input")
	auditReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		fresh, err := s.content("--new-master-key", next)
		if err != nil {
			return err
		}
		if len(fresh) == 0 {
			return show.Invalid("--new-master-key", "generate one with: openssl rand -hex 32", "the new master key is missing")
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.withStore(ctx, values, api.MigrateCheck, func(c *flowfabric.Client) error {
				n, err := c.Admin().SigningKeys().Rewrap(ctx, string(fresh), ops.AdminAction{Reason: reason})
				if err == nil {
					s.printer.Note("secrets encrypted with the new master key: %d", n)
				}
				return err
			})
		})
	}
	return cmd
}

// secretHex reads the secret of a signing key; nil if none is given.
func (s *session) secretHex(text string) (*string, error) {
	if text == "" {
		return nil, nil
	}
	data, err := s.content("--secret-hex", text)
	if err != nil {
		return nil, err
	}
	digits := strings.TrimSpace(string(data))
	return &digits, nil
}

func randomHex(bytes int) string {
	drawn := make([]byte, bytes)
	rand.Read(drawn) // never fails (crypto/rand)
	return hex.EncodeToString(drawn)
}

// keyOutcome shows the result for a signing key.
func keyOutcome[T any](of func(T) (kid, outcome string), more ...show.Column[T]) show.View[T] {
	kid := func(r T) string { k, _ := of(r); return k }
	columns := []show.Column[T]{
		{Name: "KID", Text: kid},
		{Name: "OUTCOME", Text: func(r T) string { _, o := of(r); return o }},
	}
	return show.View[T]{ID: kid, Columns: append(columns, more...)}
}
