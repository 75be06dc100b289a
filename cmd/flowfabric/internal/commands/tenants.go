package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) namespaceView() show.View[*api.Namespace] {
	p := s.printer
	type x = *api.Namespace
	return show.View[x]{ID: func(n x) string { return n.Name }, None: "no namespaces", Columns: []show.Column[x]{
		{Name: "NAMESPACE", Text: func(n x) string { return n.Name }},
		{Name: "SUBMITS/S", Text: func(n x) string { return strconv.Itoa(n.MaxSubmitPerSecond) }},
		{Name: "MAX PAYLOAD", Text: func(n x) string { return strconv.Itoa(n.MaxPayloadBytes) }},
		{Name: "QUOTAS", Text: func(n x) string { return quotaUsesText(n.DefaultQuotas) }},
		{Name: "CREATED", Text: func(n x) string { return p.Time(n.CreatedAt) }},
		{Name: "DESCRIPTION", Text: func(n x) string { return n.Description }},
		{Name: "REVISION", Text: func(n x) string { return strconv.FormatInt(n.Revision, 10) }, Wide: true},
	}}
}

func (s *session) namespaces() *cobra.Command {
	list := s.command("list", "List namespaces", `
flowfabric namespaces list
flowfabric namespaces list --wide
flowfabric namespaces list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.namespaceView(), c.Admin().Namespaces().List(ctx))
	})
	get := s.command("get NAME", "Show a namespace", `
flowfabric namespaces get default
flowfabric namespaces get default --json
flowfabric namespaces get default --template '{{.name}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printNamespace(c.Admin().Namespaces().Get(ctx, args[0]))
	})
	reason := ""
	remove := s.command("delete NAME", "Delete the settings of a namespace without executions", `
flowfabric namespaces delete acme
flowfabric namespaces delete acme --reason 'they moved out'
flowfabric namespaces delete acme --timeout 5s
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Admin().Namespaces().Delete(ctx, args[0], ops.AdminAction{Reason: reason}); err != nil {
			return err
		}
		s.printer.Note("deleted: %s", args[0])
		return nil
	})
	auditReason(remove, &reason)
	return group("namespaces", "Tenants of a store", list, get, s.namespaceSet(), remove)
}

func (s *session) printNamespace(n *api.Namespace, err error) error {
	if err != nil {
		return err
	}
	return show.One(s.printer, s.namespaceView(), n)
}

// namespaceSet changes only the given settings.
func (s *session) namespaceSet() *cobra.Command {
	var f api.NamespaceSettings
	var quotas []string
	var fs *pflag.FlagSet
	reason := ""
	cmd := s.command("set NAME", "Change settings of a namespace, creating it if necessary; other settings stay", `
flowfabric namespaces set acme --max-submit-per-second 100
flowfabric namespaces set acme --default-quota mail:acme
flowfabric namespaces set acme --max-lanes 50 --max-ready 100000 --max-priority 100
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var settings api.NamespaceSettings
		action := ops.AdminAction{Reason: reason}
		now, err := c.Admin().Namespaces().Get(ctx, args[0])
		switch {
		case err == nil:
			settings = now.NamespaceSettings
			if now.Revision > 0 {
				action.Revision = &now.Revision
			}
		case flowfabric.CodeOf(err) != "namespace_not_found":
			return err
		}
		if fs.Changed("description") {
			settings.Description = f.Description
		}
		if fs.Changed("max-submit-per-second") {
			settings.MaxSubmitPerSecond = f.MaxSubmitPerSecond
		}
		if fs.Changed("max-payload-bytes") {
			settings.MaxPayloadBytes = f.MaxPayloadBytes
		}
		for name, of := range map[string][2]*int{
			"max-lanes": {&settings.MaxLanes, &f.MaxLanes}, "max-classes": {&settings.MaxClasses, &f.MaxClasses},
			"max-ready": {&settings.MaxReady, &f.MaxReady}, "max-priority": {&settings.MaxPriority, &f.MaxPriority},
			"max-requests-per-second": {&settings.MaxRequestsPerSecond, &f.MaxRequestsPerSecond},
			"max-readers":             {&settings.MaxReaders, &f.MaxReaders}, "max-audit-rows-per-minute": {&settings.MaxAuditRowsPerMinute, &f.MaxAuditRowsPerMinute},
			"max-workers": {&settings.MaxWorkers, &f.MaxWorkers},
		} {
			if fs.Changed(name) {
				*of[0] = *of[1]
			}
		}
		if fs.Changed("default-quota") {
			settings.DefaultQuotas = quotaUses(quotas)
		}
		return s.printNamespace(c.Admin().Namespaces().Put(ctx, args[0], settings, action))
	})
	fs = cmd.Flags()
	fs.StringVar(&f.Description, "description", "", "description")
	fs.IntVar(&f.MaxSubmitPerSecond, "max-submit-per-second", 0, "limit over all servers; 0: none")
	fs.IntVar(&f.MaxRequestsPerSecond, "max-requests-per-second", 0, "requests with its keys, over all servers; 0: 1,000 per processor of a server while other namespaces send requests to it too")
	auditReason(cmd, &reason)
	fs.StringArrayVar(&quotas, "default-quota", nil, "quota for every submit that does not name it: mail, or mail:acme; may be repeated, replaces all; '' for none")
	fs.IntVar(&f.MaxLanes, "max-lanes", 0, "lanes with executions; 0: 10,000 while other namespaces are in use too")
	fs.IntVar(&f.MaxClasses, "max-classes", 0, "combinations of lane, kind, capabilities, fairness key, quotas and budgets; 0: 100,000 while other namespaces are in use too")
	fs.IntVar(&f.MaxReady, "max-ready", 0, "waiting executions beyond which submits are refused; 0: 1,000,000 while other namespaces are in use too")
	fs.IntVar(&f.MaxReaders, "max-readers", 0, "waiting reads and streams on each server; 0: three quarters of its --max-readers")
	fs.IntVar(&f.MaxAuditRowsPerMinute, "max-audit-rows-per-minute", 0, "audit rows of its keys, tokens and links; 0: 6,000 while other namespaces are in use too")
	fs.IntVar(&f.MaxWorkers, "max-workers", 0, "worker instances that serve it; 0: 10,000 while other namespaces are in use too")
	fs.IntVar(&f.MaxPriority, "max-priority", 0, "highest priority; higher ones are lowered to it; 0: any")
	fs.IntVar(&f.MaxPayloadBytes, "max-payload-bytes", 0, "maximum input size in bytes; 0: the server's limit")
	return cmd
}

func (s *session) audit() *cobra.Command {
	var filter ops.AuditFilter
	var since string
	limit := 100
	list := s.command("list", "Print the audit log, newest first", `
flowfabric audit list
flowfabric audit list --principal me --since 24h
flowfabric audit list --entity api_key --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) (err error) {
		if since != "" {
			if filter.From, err = moment("--since", since, ago); err != nil {
				return err
			}
		}
		return show.First(s.printer, s.auditView(), c.Admin().Audit(ctx, filter), limit)
	})
	fs := list.Flags()
	fs.StringVar(&filter.Principal, "principal", "", "only by this principal")
	fs.StringVar(&filter.Action, "action", "", "only this action: cancel, put_lane, create_api_key, …")
	fs.StringVar(&filter.Entity, "entity", "", "only on this type: execution, lane, quota, worker, bulk, api_key, signing_key, namespace")
	fs.StringVar(&filter.EntityID, "entity-id", "", "only on the entity with this id")
	fs.StringVar(&since, "since", "", "RFC 3339, a date, or how long ago: 2h")
	fs.IntVar(&limit, "limit", 100, "maximum number; 0: all")
	return group("audit", "Log of administrative changes", list, s.auditVerify())
}

func (s *session) auditView() show.View[api.AuditRow] {
	p := s.printer
	type x = api.AuditRow
	return show.View[x]{ID: func(r x) string { return r.ID }, None: "no rows", Columns: []show.Column[x]{
		{Name: "AT", Text: func(r x) string { return p.Time(r.At) }},
		{Name: "WHO", Text: func(r x) string { return r.Principal }},
		{Name: "ACTION", Text: func(r x) string { return r.Action }},
		{Name: "WHAT", Text: func(r x) string { return r.Entity + " " + bareID(flowfabric.ID(r.EntityID)) }},
		{Name: "OUTCOME", Text: func(r x) string { return r.Outcome }},
		{Name: "REASON", Text: func(r x) string { return r.Reason }},
		{Name: "NAMESPACE", Text: func(r x) string { return r.Namespace }, Wide: true},
		{Name: "REQUEST", Text: func(r x) string { return r.RequestID }, Wide: true},
	}}
}

func (s *session) auditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify [NAMESPACE]", Short: "Verify the hash chain of the audit log; exit 1 if rows were changed or removed", Args: counted(cobra.MaximumNArgs(1)),
		Example: examples("flowfabric audit verify\nflowfabric audit verify default --store sqlite:ff.db\nflowfabric audit verify '*' --store sqlite:ff.db --json"),
	}
	storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		verify := func(ctx context.Context, c *flowfabric.Client) error {
			check, err := c.Admin().VerifyAudit(ctx, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return s.printAuditCheck(check)
		}
		if !namesStore(cmd) {
			return s.withClient(cmd, verify)
		}
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.withStore(ctx, values, api.MigrateCheck, func(c *flowfabric.Client) error { return verify(ctx, c) })
		})
	}
	return cmd
}

func (s *session) printAuditCheck(check api.AuditCheck) error {
	type x = api.AuditCheck
	if err := show.One(s.printer, show.View[x]{
		ID: func(c x) string { return c.Hash },
		Columns: []show.Column[x]{
			{Name: "STATE", Text: func(c x) string {
				if c.OK {
					return "ok"
				}
				return "fail"
			}},
			{Name: "ROWS", Text: func(c x) string { return strconv.FormatInt(c.Rows, 10) }},
			{Name: "FIRST", Text: func(c x) string { return strconv.FormatInt(c.First, 10) }},
			{Name: "LAST", Text: func(c x) string { return strconv.FormatInt(c.Last, 10) }},
			{Name: "KEYED", Text: func(c x) string {
				if !c.Keyed {
					return "no: without a master key, anyone who can write the database can rewrite the chain"
				}
				return fmt.Sprintf("from row %d", c.FirstKeyed)
			}},
			{Name: "PROBLEM", Text: func(c x) string {
				switch {
				case c.Broken != 0:
					return fmt.Sprintf("row %d: %s", c.Broken, c.Problem)
				case len(c.Removed) != 0:
					return c.Problem + ": " + strings.Join(c.Removed, ", ")
				}
				return c.Problem
			}},
			{Name: "HASH", Text: func(c x) string { return c.Hash }},
		},
	}, check); err != nil {
		return err
	}
	if !check.OK {
		return show.Exit(show.ExitFailed)
	}
	return nil
}
