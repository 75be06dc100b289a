package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) keyView() show.View[*api.APIKey] {
	p := s.printer
	type x = *api.APIKey
	return show.View[x]{ID: func(k x) string { return k.ID }, None: "no API keys", Columns: []show.Column[x]{
		{Name: "KEY", Text: func(k x) string { return k.ID }},
		{Name: "NAME", Text: func(k x) string { return k.Name }},
		{Name: "ROLES", Text: func(k x) string { return strings.Join(k.Roles, ",") }},
		{Name: "NAMESPACES", Text: func(k x) string { return strings.Join(k.Namespaces, ",") }},
		{Name: "USED", Text: func(k x) string { return p.Time(k.LastUsedAt) }},
		{Name: "EXPIRES", Text: func(k x) string { return p.Time(k.ExpiresAt) }},
		{Name: "REVOKED", Text: func(k x) string { return p.Time(k.RevokedAt) }},
		{Name: "LANES", Text: func(k x) string { return strings.Join(k.Lanes, ",") }, Wide: true},
		{Name: "CREATED", Text: func(k x) string { return p.Time(k.CreatedAt) }, Wide: true},
		{Name: "BY", Text: func(k x) string { return k.CreatedBy }, Wide: true},
		{Name: "REVISION", Text: func(k x) string { return strconv.FormatInt(k.Revision, 10) }, Wide: true},
	}}
}

func (s *session) apiKeys() *cobra.Command {
	list := s.command("list", "List API keys", `
flowfabric api-keys list
flowfabric api-keys list --wide
flowfabric api-keys list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.keyView(), c.Admin().APIKeys().List(ctx))
	})
	get := s.command("get KEY", "Show an API key", `
flowfabric api-keys get abcdefghijkl
flowfabric api-keys get abcdefghijkl --json
flowfabric api-keys get abcdefghijkl --template '{{.name}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		key, err := c.Admin().APIKeys().Get(ctx, args[0])
		if err != nil {
			return err
		}
		return show.One(s.printer, s.keyView(), key)
	})
	return group("api-keys", "API keys of clients and workers", list, get, s.keyCreate(), s.keySet(), s.keyDelete(), s.keyRotate())
}

// keyFlags are the permissions of a key.
type keyFlags struct {
	name, expires            string
	roles, namespaces, lanes []string
	perSecond, inFlight      int
}

func (f *keyFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "name", "", "name of the principal")
	fs.StringSliceVar(&f.roles, "role", nil, "read, submit, work, operate or admin")
	fs.StringSliceVar(&f.namespaces, "for-namespace", nil, "namespaces it is valid for; * for all")
	fs.StringSliceVar(&f.lanes, "lane", nil, "lanes it may work on; default: all")
	fs.StringVar(&f.expires, "expires", "", "expiry: a time, or a duration from now; default: never")
	fs.IntVar(&f.perSecond, "max-requests-per-second", 0, "limit over all servers; 0: none")
	fs.IntVar(&f.inFlight, "max-in-flight", 0, "concurrent requests; 0: no limit")
}

func (f *keyFlags) expiry() (at time.Time, err error) {
	if f.expires == "" {
		return at, nil
	}
	return moment("--expires", f.expires, ahead)
}

// keyCreate creates a key on a server or, for the first one, directly in the store (U125).
func (s *session) keyCreate() *cobra.Command {
	var f keyFlags
	reason := ""
	cmd := &cobra.Command{
		Use: "create", Short: "Create an API key; its secret is printed only this once", Args: counted(cobra.NoArgs),
		Example: examples(`
flowfabric api-keys create --store sqlite:ff.db --role admin --name me --for-namespace '*'
flowfabric api-keys create --role submit --name shop --for-namespace default
flowfabric api-keys create --role work --name mailer --for-namespace default --lane mail --expires 2160h
`),
	}
	storeFlags(cmd)
	f.register(cmd.Flags())
	auditReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		expires, err := f.expiry()
		if err != nil {
			return err
		}
		if len(f.namespaces) == 0 && slices.Contains(f.roles, "admin") {
			f.namespaces = []string{"*"}
		}
		if len(f.namespaces) == 0 {
			f.namespaces = []string{"default"}
		}
		create := func(ctx context.Context, c *flowfabric.Client) error {
			key, err := c.Admin().APIKeys().Create(ctx, api.APIKeySettings{
				Name: f.name, Roles: f.roles, Namespaces: f.namespaces, Lanes: f.lanes, ExpiresAt: expires,
				MaxRequestsPerSecond: f.perSecond, MaxInFlight: f.inFlight,
			}, ops.CreateKeyOptions{AdminAction: ops.AdminAction{Reason: reason}})
			return s.printSecret(key, err)
		}
		if !namesStore(cmd) {
			return s.withClient(cmd, create)
		}
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.withStore(ctx, values, api.MigrateAuto, func(c *flowfabric.Client) error { return create(ctx, c) })
		})
	}
	return cmd
}

// printSecret prints the secret alone on its line, so that it can be redirected into a file.
func (s *session) printSecret(key *api.NewAPIKey, err error) error {
	if err != nil {
		return err
	}
	type x = *api.NewAPIKey
	if err := show.One(s.bare(), show.View[x]{ID: func(k x) string { return k.Secret }}, key); err != nil {
		return err
	}
	use := ""
	if len(key.Namespaces) != 1 || key.Namespaces[0] == "*" {
		use = "; submits need a namespace: --namespace default, or FF_NAMESPACE=default"
	}
	s.printer.Note("key %s of %s: store the secret, it is not shown again%s", key.ID, key.Name, use)
	return nil
}

// keySet changes only the given settings.
func (s *session) keySet() *cobra.Command {
	var f keyFlags
	var fs *pflag.FlagSet
	reason, force := "", false
	cmd := s.command("set KEY", "Change an API key; other settings stay", `
flowfabric api-keys set abcdefghijkl --role read --role submit
flowfabric api-keys set abcdefghijkl --expires 24h --reason 'she leaves tomorrow'
flowfabric api-keys set abcdefghijkl --max-requests-per-second 50
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		expires, err := f.expiry()
		if err != nil {
			return err
		}
		change := api.APIKeyChange{
			Name: changed(fs, "name", f.name), Roles: changed(fs, "role", f.roles), Namespaces: changed(fs, "for-namespace", f.namespaces),
			Lanes: changed(fs, "lane", f.lanes), ExpiresAt: changed(fs, "expires", expires),
			MaxRequestsPerSecond: changed(fs, "max-requests-per-second", f.perSecond), MaxInFlight: changed(fs, "max-in-flight", f.inFlight),
			Force: force,
		}
		key, err := c.Admin().APIKeys().Change(ctx, args[0], change, ops.AdminAction{Reason: reason})
		if err != nil {
			return err
		}
		return show.One(s.printer, s.keyView(), key)
	})
	fs = cmd.Flags()
	f.register(fs)
	fs.BoolVar(&force, "force", false, "even if no key for all namespaces with role admin is left")
	auditReason(cmd, &reason)
	return cmd
}

// changed returns the value of a flag that was given, else nil.
func changed[T any](fs *pflag.FlagSet, name string, value T) *T {
	if !fs.Changed(name) {
		return nil
	}
	return &value
}

func (s *session) keyDelete() *cobra.Command {
	reason, force := "", false
	cmd := s.command("delete KEY", "Revoke an API key; the last admin key of all namespaces needs --force", `
flowfabric api-keys delete abcdefghijkl
flowfabric api-keys delete abcdefghijkl --reason 'it was in a log'
flowfabric api-keys delete abcdefghijkl --force
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Admin().APIKeys().Revoke(ctx, args[0], ops.RevokeAPIKeyOptions{AdminAction: ops.AdminAction{Reason: reason}, Force: force}); err != nil {
			return err
		}
		s.printer.Note("revoked: %s", args[0])
		return nil
	})
	auditReason(cmd, &reason)
	cmd.Flags().BoolVar(&force, "force", false, "even if it is the last admin key of all namespaces")
	return cmd
}

// auditReason adds the reason flag of administrative commands.
func auditReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, recorded in the audit log")
}

func (s *session) keyRotate() *cobra.Command {
	var overlap time.Duration
	reason := ""
	var cmd *cobra.Command
	cmd = s.command("rotate KEY", "Replace the secret of an API key, printed only this once; the old one stays valid for a while", `
flowfabric api-keys rotate abcdefghijkl
flowfabric api-keys rotate abcdefghijkl --overlap 1h
flowfabric api-keys rotate abcdefghijkl --overlap 0s
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		how := ops.RotateOptions{AdminAction: ops.AdminAction{Reason: reason}}
		if cmd.Flags().Changed("overlap") {
			how.Overlap = &overlap
		}
		return s.printSecret(c.Admin().APIKeys().Rotate(ctx, args[0], how))
	})
	auditReason(cmd, &reason)
	cmd.Flags().DurationVar(&overlap, "overlap", 0, "how long the old secret stays valid; default: the server's setting key-grace")
	return cmd
}
