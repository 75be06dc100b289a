package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

var checkView = show.View[api.Check]{
	ID: func(c api.Check) string { return c.Name + " " + c.State },
	Columns: []show.Column[api.Check]{
		{Name: "CHECK", Text: func(c api.Check) string { return c.Name }},
		{Name: "STATE", Text: func(c api.Check) string { return c.State }},
		{Name: "DETAIL", Text: func(c api.Check) string { return c.Detail }},
		{Name: "WHAT TO DO", Text: func(c api.Check) string { return c.Hint }},
	},
}

// doctor prints the health report of the server, or of the store if none is given (U165).
func (s *session) doctor() *cobra.Command {
	integrity, acknowledge := false, false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check a store, or a running server; exit 1 on a failed check", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric doctor\nflowfabric doctor --store sqlite:ff.db --integrity\nflowfabric doctor --acknowledge-rollback"),
	}
	serverFlags(cmd)
	cmd.Flags().BoolVar(&integrity, "integrity", false, "also recompute counters and show differences")
	cmd.Flags().BoolVar(&acknowledge, "acknowledge-rollback", false, "first acknowledge that the database came back without some commits; until then the check fails")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !namesStore(cmd) {
			return s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error {
				checks, err := examine(ctx, c, integrity, acknowledge)
				if err != nil {
					return err
				}
				return s.printChecks(checks)
			})
		}
		values, problems := s.serverSettings(cmd, false)
		if err := s.problems(problems); err != nil {
			return err
		}
		return s.during(cmd, func(ctx context.Context) error { return s.examineStore(ctx, values, integrity, acknowledge) })
	}
	return cmd
}

func (s *session) printChecks(checks []api.Check) error {
	if err := show.All(s.printer, checkView, checks); err != nil {
		return err
	}
	if !api.NewHealthReport(checks...).OK {
		return show.Exit(show.ExitFailed)
	}
	return nil
}

// examine calls Doctor on a server or a store.
func examine(ctx context.Context, c *flowfabric.Client, integrity, acknowledge bool) ([]api.Check, error) {
	if acknowledge {
		if _, err := c.Admin().AcknowledgeRollbacks(ctx); err != nil {
			return nil, err
		}
	}
	found, err := c.Admin().Doctor(ctx)
	if err != nil || !integrity {
		return found.Checks, err
	}
	report, err := c.Admin().Integrity(ctx)
	if err != nil {
		return nil, err
	}
	return append(found.Checks, integrityChecks(report)...), nil
}

func integrityChecks(report api.Integrity) []api.Check {
	if report.OK {
		return []api.Check{{Name: "integrity", State: api.CheckOK, Detail: "agrees: " + strings.Join(report.Checked, ", ")}}
	}
	var checks []api.Check
	for _, d := range report.Differences {
		checks = append(checks, api.Check{
			Name: "integrity", State: api.CheckFail, Detail: fmt.Sprintf("%s %s: stored %d, found %d", d.What, d.Key, d.Stored, d.Found),
			Hint: "make a copy (flowfabric backup) and report it",
		})
	}
	return checks
}

// examineStore checks a store that no server has open, and the server settings for it.
func (s *session) examineStore(ctx context.Context, values *settings.Values, integrity, acknowledge bool) error {
	i := &instance{session: s, values: values, log: slog.New(slog.DiscardHandler)}
	cfg := openConfig(values, i.log)
	cfg.Migrate = api.MigrateCheck
	var checks []api.Check
	err := s.withOpened(ctx, settings.Get[string](values, "store"), cfg, func(c *flowfabric.Client) (err error) {
		checks, err = examine(ctx, c, integrity, acknowledge)
		return err
	})
	if err != nil {
		checks = append(checks, failedOpen(err))
	}
	if settings.Get[string](values, "tls-cert") != "" {
		checks = append(checks, i.checkFiles())
	}
	return s.printChecks(checks)
}

// failedOpen describes why the store cannot be opened.
func failedOpen(err error) api.Check {
	check := api.Check{Name: "store", State: api.CheckFail, Detail: err.Error(), Hint: "check that the database runs and the address is right"}
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) {
		return check
	}
	check.Detail = refusal.Message
	if refusal.Hint != "" {
		check.Hint = refusal.Hint
	}
	if name, named := refusal.Current["check"].(string); named {
		check.Name = name
	}
	if refusal.Code == "store_locked" {
		check.State, check.Hint = api.CheckWarn, "omit --store: the server that has the store open checks itself"
	}
	return check
}

// expiryBound is the remaining validity below which a certificate is a warning.
const expiryBound = 14 * 24 * time.Hour

// checkFiles checks the TLS files as a server does at start.
func (i *instance) checkFiles() api.Check {
	for _, problem := range i.check() {
		if strings.HasPrefix(problem.Variable, "FF_TLS") {
			return api.Check{Name: "tls", State: api.CheckFail, Detail: problem.String(), Hint: "fix the files, or the settings that name them"}
		}
	}
	return i.checkTLS()
}

// checkTLS checks the loaded certificate.
func (i *instance) checkTLS() api.Check {
	end, err := i.certs.Expiry()
	if err != nil {
		return api.Check{Name: "tls", State: api.CheckFail, Detail: err.Error(), Hint: "set --tls-cert and --tls-key"}
	}
	check := api.Check{Name: "tls", State: api.CheckOK, Detail: "the certificate expires at " + end.UTC().Format(time.RFC3339)}
	const renew = "renew it; the server reloads the files"
	switch left := time.Until(end); {
	case left <= 0:
		check.State, check.Hint = api.CheckFail, renew
	case left < expiryBound:
		check.State, check.Hint = api.CheckWarn, renew
	}
	return check
}
