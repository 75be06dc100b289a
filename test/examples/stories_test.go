package examples

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	crash "github.com/flowfabric/flowfabric/examples/crash/story"
	embed "github.com/flowfabric/flowfabric/examples/embed/story"
	hello "github.com/flowfabric/flowfabric/examples/hello/story"
	incident "github.com/flowfabric/flowfabric/examples/incident/story"
	order "github.com/flowfabric/flowfabric/examples/order-tx/story"
	retry "github.com/flowfabric/flowfabric/examples/retry-and-cancel/story"
	"github.com/flowfabric/flowfabric/examples/stage"
	tenants "github.com/flowfabric/flowfabric/examples/tenants/story"
)

func TestU235_hello_charges_once_for_an_order_that_is_submitted_twice(t *testing.T) {
	t.Parallel()
	everywhere(t, hello.Hello, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		x := only(t, c, "default")
		if x.Status != flowfabric.StatusSucceeded || x.TotalAttempts != 1 || x.Kind != string(hello.ChargeCard) {
			t.Errorf("%+v", x)
		}
		wantEvents(t, c, x.ID, "execution.submitted lease.acquired execution.completed")
	})
}

func TestU238_a_killed_worker_is_taken_over_and_its_steps_are_not_done_again(t *testing.T) {
	t.Parallel()
	everywhere(t, crash.Crash, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		x := only(t, c, p.Name)
		if x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 1 || x.TotalAttempts != 2 || string(x.Result.Data) != "[40,50,40,50]" {
			t.Errorf("%+v", x)
		}
		steps, err := c.Executions().Steps(t.Context(), x.ID)
		if err != nil {
			t.Fatal(err)
		}
		var done []string
		for _, step := range steps {
			done = append(done, step.Name+map[int]string{0: " by the dead", 1: " by the living"}[step.AttemptIndex])
		}
		want := []string{"Oslo by the dead", "Kyoto by the dead", "Lima by the living", "Quito by the living"}
		if !slices.Equal(done, want) {
			t.Errorf("%q, want %q", done, want)
		}
	})
}

func TestU243_responders_die_until_the_cap_and_an_operator_replays(t *testing.T) {
	t.Parallel()
	everywhere(t, incident.Incident, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		x := only(t, c, p.Name)
		if x.Status != flowfabric.StatusSucceeded || x.ReplayCount != 1 || x.TotalAttempts != 4 || x.RunIndex != 1 {
			t.Errorf("%+v", x)
		}
		wantEvents(t, c, x.ID, "execution.submitted lease.acquired"+
			" lease.expired attempt.ended lease.acquired lease.expired attempt.ended lease.acquired execution.completed"+
			" execution.replayed lease.acquired execution.completed")
		attempts, err := c.Executions().Attempts(t.Context(), x.ID)
		if err != nil || len(attempts) != 4 {
			t.Fatalf("%+v, %v", attempts, err)
		}
		for i, want := range []string{"initial", "reclaim", "reclaim", "replay"} {
			if attempts[i].Type != want {
				t.Errorf("attempt %d is %s, want %s", i, attempts[i].Type, want)
			}
		}
		if replayed := attempts[3].Lineage; replayed == nil || replayed.ReplayNumber != 1 {
			t.Errorf("%+v", replayed)
		}
		why, err := c.Executions().Explain(t.Context(), x.ID)
		if err != nil || why.Outcome == "" || len(why.Blockers) != 0 || len(why.History) == 0 {
			t.Errorf("%+v, %v", why, err)
		}
	})
}

func TestU244_an_order_and_its_work_are_both_there_or_neither(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, p *place) {
		x := only(t, p.open(t, "default"), p.Name)
		if x.Status != flowfabric.StatusSucceeded || x.IdempotencyKey != p.Name+"-1" {
			t.Errorf("%+v", x)
		}
		if got := orders(t, p.Store); !slices.Equal(got, []string{p.Name + "-1"}) {
			t.Errorf("orders %q", got)
		}
	}
	on(t, order.OrderTx, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, check)
	on(t, order.OrderTx, "postgres", func(t *testing.T) stage.Stage { return stage.Stage{Store: cluster.Database(t)} }, check)
	on(t, order.OrderTx, "server and store", func(t *testing.T) stage.Stage {
		store := cluster.Database(t)
		s := serve(t, store, "default")
		s.Store = store
		return s
	}, check)
}

// orders are the rows of the example's own table.
func orders(t *testing.T, store string) (numbers []string) {
	t.Helper()
	const all = "select coalesce(max(number), ''), count(*) from example_orders"
	var (
		number string
		count  int
		err    error
	)
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		db, opened := sql.Open("sqlite", path)
		if opened != nil {
			t.Fatal(opened)
		}
		defer db.Close()
		err = db.QueryRowContext(t.Context(), all).Scan(&number, &count)
	} else {
		conn, opened := pgx.Connect(t.Context(), store)
		if opened != nil {
			t.Fatal(opened)
		}
		defer conn.Close(t.Context())
		err = conn.QueryRow(t.Context(), all).Scan(&number, &count)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Repeat([]string{number}, count)
}

func TestU247_failures_are_retried_by_category_and_all_that_failed_are_replayed(t *testing.T) {
	t.Parallel()
	everywhere(t, retry.RetryAndCancel, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		byNumber := map[string]*flowfabric.Execution{}
		for _, x := range executions(t, c, p.Name) {
			var parcel retry.Parcel
			if err := x.Input.Decode(&parcel); err != nil {
				t.Fatal(err)
			}
			byNumber[parcel.Number] = x
		}
		for number, want := range map[string]struct {
			status            flowfabric.Status
			attempts, replays int
			failed            []string
		}{
			"p-road":    {flowfabric.StatusSucceeded, 4, 0, []string{"road_closed", "road_closed", "road_closed"}},
			"p-depot":   {flowfabric.StatusSucceeded, 2, 0, []string{"depot_busy"}},
			"p-refused": {flowfabric.StatusSucceeded, 2, 1, []string{"handler_error"}},
			"p-address": {flowfabric.StatusSucceeded, 2, 1, []string{"bad_address"}},
			"p-lost":    {flowfabric.StatusCancelled, 1, 0, nil},
		} {
			x := byNumber[number]
			if x == nil {
				t.Errorf("%s is missing", number)
				continue
			}
			if x.Status != want.status || x.TotalAttempts != want.attempts || x.ReplayCount != want.replays || !slices.Equal(categories(t, c, x.ID), want.failed) {
				t.Errorf("%s: %s after %d attempts and %d replays, failed by %q", number, x.Status, x.TotalAttempts, x.ReplayCount, categories(t, c, x.ID))
			}
		}
		for job, err := range c.Operate().BulkJobs(t.Context()) {
			if err != nil || job.Action != api.BulkReplay || job.Total != 2 || job.Done != 2 {
				t.Errorf("%+v, %v", job, err)
			}
		}
		wantRounds(t, c, byNumber)
	})
}

func TestU246_tenants_have_keys_a_fair_share_limits_and_an_audit_log(t *testing.T) {
	t.Parallel()
	on(t, tenants.Tenants, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, checkTenants)
	on(t, tenants.Tenants, "postgres", func(t *testing.T) stage.Stage { return stage.Stage{Store: cluster.Database(t)} }, checkTenants)
	on(t, tenants.Tenants, "server", func(t *testing.T) stage.Stage { return serve(t, sqliteStore(t), "*") }, checkTenants)
}

func checkTenants(t *testing.T, p *place) {
	var ended []*flowfabric.Execution
	for tenant, pictures := range map[string]int{p.Name + "-red": 19, p.Name + "-blue": 6} {
		t.Run(tenant, func(t *testing.T) { // one after the other: a SQLite store has one engine at a time
			c := p.open(t, tenant)
			done := 0
			for _, x := range executions(t, c, p.Name) {
				if x.Status == flowfabric.StatusSucceeded {
					done++
					ended = append(ended, x)
				}
			}
			if done != pictures {
				t.Errorf("%d pictures are rendered, want %d", done, pictures)
			}
			check, err := c.Admin().VerifyAudit(t.Context(), tenant)
			if err != nil || !check.OK || tenant == p.Name+"-red" && check.Rows == 0 {
				t.Errorf("%+v, %v", check, err)
			}
			for row, err := range c.Admin().Audit(t.Context(), ops.AuditFilter{Namespace: tenant, Principal: "red-auditor"}) {
				if err != nil || row.Outcome != "role_required" {
					t.Errorf("%+v, %v", row, err)
				}
			}
			if space, err := c.Admin().Namespaces().Get(t.Context(), tenant); err != nil || space.MaxPayloadBytes != 1000 ||
				!slices.Equal(space.DefaultQuotas, []api.QuotaUse{{Quota: p.Name, Key: tenant}}) {
				t.Errorf("%+v, %v", space, err)
			}
			checkRoom(t, c, p.Name, tenant == p.Name+"-red")
			for key, err := range c.Admin().APIKeys().List(t.Context()) {
				if err != nil || key.Name != "teller" && key.RevokedAt.IsZero() {
					t.Errorf("%+v, %v", key, err)
				}
			}
		})
	}
	slices.SortFunc(ended, func(a, b *flowfabric.Execution) int { return a.StartedAt.Compare(b.StartedAt) })
	blue := 0
	for _, x := range ended[:min(7, len(ended))] {
		if strings.HasSuffix(x.Namespace, "-blue") {
			blue++
		}
	}
	if blue != 3 {
		t.Errorf("%d of the first seven pictures are blue's, want all its three", blue)
	}
}

// checkRoom looks at the quota of both tenants and at the budget of red: one picture waits for it.
func checkRoom(t *testing.T, c *flowfabric.Client, lane string, red bool) {
	t.Helper()
	quota, err := c.Quotas().Get(t.Context(), lane)
	if err != nil || !quota.QuotaSettings.PerKey || quota.QuotaSettings.ConcurrencyLimit != 2 {
		t.Errorf("%+v, %v", quota, err)
	}
	budget, err := c.Budgets().Get(t.Context(), lane)
	if !red {
		if flowfabric.CodeOf(err) != "budget_not_found" {
			t.Errorf("blue sees the budget of red: %+v, %v", budget, err)
		}
		return
	}
	if n := budget.Dimensions["pictures"]; err != nil || n.Used != 5 || n.EffectiveHard != 5 || n.Reserved != 0 {
		t.Errorf("%+v, %v", budget, err)
	}
	waiting := ops.Filter{Lane: []string{lane}, Kind: []string{string(tenants.Render)}, Reason: []string{"waiting_for_budget"}}
	if n, err := c.Executions().Count(t.Context(), waiting); err != nil || n.Total != 1 {
		t.Errorf("%+v wait for the budget, want one: %v", n, err)
	}
}

func TestU250_a_program_has_engine_worker_and_server_inside_it(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, p *place) {
		c := p.open(t, "default")
		if x := only(t, c, p.Name); x.Status != flowfabric.StatusSucceeded {
			t.Errorf("%+v", x)
		}
		if lane, err := c.Lanes().Get(t.Context(), p.Name); err != nil || lane.State != api.LanePaused {
			t.Errorf("%+v, %v", lane, err)
		}
		var told []string
		for row, err := range c.Admin().Audit(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, row.Principal+" "+row.Outcome)
		}
		if !slices.Contains(told, "ann done") || !slices.Contains(told, "bob role_required") {
			t.Errorf("audit %q", told)
		}
	}
	on(t, embed.Embed, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, check)
	on(t, embed.Embed, "postgres", func(t *testing.T) stage.Stage { return stage.Stage{Store: cluster.Database(t)} }, check)
}

func TestU234_a_story_that_cannot_be_told_on_a_server_says_so(t *testing.T) {
	t.Parallel()
	for _, story := range []stage.Story{order.OrderTx, embed.Embed} {
		err := stage.Play(t.Context(), story, stage.Stage{Server: "http://127.0.0.1:1"})
		var misuse *stage.Misuse
		if !errors.As(err, &misuse) {
			t.Errorf("%s: %v", story.Name, err)
		}
	}
}
