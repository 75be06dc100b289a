package commands

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var checkView = show.View[wire.Check]{
	ID: func(c wire.Check) string { return c.Name + " " + c.State },
	Columns: []show.Column[wire.Check]{
		{Name: "CHECK", Text: func(c wire.Check) string { return c.Name }},
		{Name: "STATE", Text: func(c wire.Check) string { return c.State }},
		{Name: "DETAIL", Text: func(c wire.Check) string { return c.Detail }},
		{Name: "WHAT TO DO", Text: func(c wire.Check) string { return c.Hint }},
	},
}

// The states of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

func (s *session) doctor() *cobra.Command {
	integrity := false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check a store, or a running server; exit 1 if something is wrong", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric doctor\nflowfabric doctor --store sqlite:ff.db\nflowfabric doctor --store sqlite:ff.db --integrity"),
	}
	serverFlags(cmd)
	cmd.Flags().BoolVar(&integrity, "integrity", false, "recount what is counted, and show differences")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("store") {
			return s.during(cmd, func(ctx context.Context) error { return s.askDoctor(ctx, cmd, integrity) })
		}
		values, problems := s.serverSettings(cmd, false)
		if err := s.problems(problems); err != nil {
			return err
		}
		return s.during(cmd, func(ctx context.Context) error { return s.examine(ctx, values, integrity) })
	}
	return cmd
}

// askDoctor lets the server check itself.
func (s *session) askDoctor(ctx context.Context, cmd *cobra.Command, integrity bool) error {
	if integrity {
		report, err := ask(ctx, s, cmd, wire.CheckIntegrity, &wire.None{})
		if err != nil {
			return err
		}
		checks := []wire.Check{{Name: "integrity", State: checkOK, Detail: "agrees: " + strings.Join(report.Checked, ", ")}}
		for _, d := range report.Differences {
			checks = append(checks, wire.Check{Name: d.What, State: checkFail, Detail: fmt.Sprintf("%s: stored %d, found %d", d.Key, d.Stored, d.Found)})
		}
		return s.printChecks(checks)
	}
	checkup, err := ask(ctx, s, cmd, wire.RunDoctor, &wire.None{})
	if err != nil {
		return err
	}
	return s.printChecks(checkup.Checks)
}

func (s *session) printChecks(checks []wire.Check) error {
	if err := show.List(s.printer, checkView, each(checks)); err != nil {
		return err
	}
	for _, c := range checks {
		if c.State == checkFail {
			return show.Exit(show.ExitFailed)
		}
	}
	return nil
}

// examine checks a store that no server has open.
func (s *session) examine(ctx context.Context, values *settings.Values, integrity bool) error {
	address := settings.Get[string](values, "store")
	var checks []wire.Check
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		checks = append(checks, checkDisk(filepath.Dir(path)))
	}
	if i := (&instance{session: s, values: values}); settings.Get[string](values, "tls-cert") != "" {
		checks = append(checks, i.checkTLS())
	}
	err := s.withStore(ctx, address, "check", func(c flowfabric.Client) error {
		found, err := examineStore(ctx, c, integrity)
		checks = append(checks, found...)
		return err
	})
	if err != nil {
		checks = append(checks, failedOpen(err))
	}
	return s.printChecks(checks)
}

// failedOpen says what keeps the store from being opened.
func failedOpen(err error) wire.Check {
	check := wire.Check{Name: "store", State: checkFail, Detail: err.Error()}
	var refusal *flowfabric.Error
	if errors.As(err, &refusal) {
		check.Detail, check.Hint = refusal.Message, refusal.Hint
		if refusal.Code == "store_locked" {
			check.State, check.Hint = checkWarn, "leave --store out: then the server that has it open checks itself"
		}
	}
	return check
}

// The bounds beyond which a check warns.
const (
	skewBound   = time.Second
	readyBound  = 10 * time.Minute
	diskBound   = 1 << 30
	expiryBound = 14 * 24 * time.Hour
)

func examineStore(ctx context.Context, c flowfabric.Client, integrity bool) ([]wire.Check, error) {
	info, err := c.Admin().Info(ctx)
	if err != nil {
		return nil, err
	}
	checks := []wire.Check{
		{Name: "store", State: checkOK, Detail: info.Store.Kind + " " + info.Store.Version + " answers and is durable"},
		{Name: "schema", State: checkOK, Detail: fmt.Sprintf("%d, that of this program", info.Store.Schema)},
		{Name: "clock", State: checkOK, Detail: "this host's clock is ahead of the store's by " + info.ClockSkew.String()},
	}
	if skew := info.ClockSkew.Abs(); skew > skewBound {
		checks[2].State, checks[2].Hint = checkWarn, "let both hosts follow one time server"
	}
	locked, err := hasAdminKey(ctx, c)
	if err != nil {
		return nil, err
	}
	keys := wire.Check{Name: "keys", State: checkOK, Detail: "there is an admin key"}
	if !locked {
		keys = wire.Check{
			Name: "keys", State: checkWarn, Detail: "there is no admin key: a server on this store is open, and only on loopback",
			Hint: "flowfabric api-keys create --store … --role admin --name me",
		}
	}
	checks = append(checks, keys)
	for lane, err := range c.Lanes().List(ctx) {
		if err != nil {
			return nil, err
		}
		checks = append(checks, checkLane(lane, info.ServerTime))
	}
	if integrity {
		report, err := c.Admin().Integrity(ctx)
		if err != nil {
			return nil, err
		}
		checks = append(checks, checkIntegrity(report))
	}
	return checks, nil
}

func checkLane(lane *flowfabric.Lane, now time.Time) wire.Check {
	check := wire.Check{Name: "lane " + lane.Name, State: checkOK, Detail: fmt.Sprintf("%d ready, %d running", lane.Counts[flowfabric.StatusReady], lane.Counts[flowfabric.StatusRunning])}
	if waited := now.Sub(lane.OldestReadyAt); !lane.OldestReadyAt.IsZero() && waited > readyBound {
		check.State = checkWarn
		check.Detail += ", the oldest ready for " + show.Span(waited)
		check.Hint = "start workers for its kinds and capabilities, or look whether the lane is paused"
	}
	return check
}

func checkIntegrity(report flowfabric.IntegrityReport) wire.Check {
	if report.OK {
		return wire.Check{Name: "integrity", State: checkOK, Detail: "agrees: " + strings.Join(report.Checked, ", ")}
	}
	return wire.Check{
		Name: "integrity", State: checkFail, Detail: fmt.Sprintf("%d differences", len(report.Differences)),
		Hint: "keep a copy (flowfabric backup) and report it",
	}
}

func (i *instance) checkTLS() wire.Check {
	if problems := i.check(); len(problems) > 0 {
		return wire.Check{Name: "tls", State: checkFail, Detail: problems[0].String()}
	}
	end, err := i.certs.Expiry()
	if err != nil {
		return wire.Check{Name: "tls", State: checkFail, Detail: err.Error()}
	}
	check := wire.Check{Name: "tls", State: checkOK, Detail: "the certificate ends at " + end.UTC().Format(time.RFC3339)}
	if time.Until(end) < expiryBound {
		check.State, check.Hint = checkWarn, "renew it; the server reads the files again by itself"
	}
	return check
}
