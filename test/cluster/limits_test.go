package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// What some of the crowd's work needs: a slot of a quota, and of a budget a place while it runs and tokens that it reports.
const (
	quotaName  = "q"
	budgetName = "team"
	slots      = 4
	places     = 5
)

// limited is the policy of work under limits.
const limited = `"quotas":[{"quota":"q"}],"budget_ids":["team"],"estimate":{"places":1,"tokens":3},`

// deedVariable tells a process that is to be killed that it only claims.
const deedVariable = "FF_CLUSTER_DEED"

func teamRef() engine.BudgetRef {
	return engine.BudgetRef{Namespace: base.DefaultNamespace, Budget: budgetName}
}

// putLimits makes the quota and the budget.
func putLimits(ctx context.Context, t *testing.T, e *engine.Engine, hard map[string]int64) {
	t.Helper()
	if _, err := e.PutQuota(ctx, operator, quotaName, core.QuotaSettings{ConcurrencyLimit: slots}, engine.AdminAction{}); err != nil {
		t.Fatal(err)
	}
	d := core.BudgetDefinition{Name: budgetName, Dimensions: map[string]core.BudgetLimits{}}
	for name, limit := range hard {
		d.Dimensions[name] = core.BudgetLimits{Hard: &limit}
	}
	if _, err := e.CreateBudget(ctx, operator, base.DefaultNamespace, d, engine.AdminAction{}); err != nil {
		t.Fatal(err)
	}
}

// watch looks at the limits all the while: whatever moment a snapshot is of, none is passed (SI7, BI1).
func watch(ctx context.Context, t *testing.T, e *engine.Engine) {
	for ctx.Err() == nil {
		quota, err := e.Quota(ctx, operator, quotaName)
		if err == nil && len(quota.Keys) > 0 && quota.Keys[0].Held > slots {
			t.Errorf("SI7: %d slots of %d are held", quota.Keys[0].Held, slots)
		}
		budget, err := e.Budget(ctx, operator, teamRef())
		if n := budget.Numbers["places"]; err == nil && n.Used+n.Reserved > places {
			t.Errorf("BI1: %d of %d places are reserved", n.Reserved, places)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// checkLimits looks at what is counted once everything is over: nothing is left of those who died, what was booked is what executions
// have used, and a recount finds the same (I9, S42).
func checkLimits(ctx context.Context, t *testing.T, e *engine.Engine) {
	t.Helper()
	budget, err := e.Budget(ctx, operator, teamRef())
	if err != nil {
		t.Fatal(err)
	}
	metered, n := meteredUnder(ctx, t, e), budget.Numbers
	if n["places"].Reserved != 0 || n["tokens"].Reserved != 0 || budget.LiveHolds != 0 || n["tokens"].Used != metered || metered == 0 {
		t.Errorf("I9: %d are used and %d reserved, %d places, %d holds; executions have used %d",
			n["tokens"].Used, n["tokens"].Reserved, n["places"].Reserved, budget.LiveHolds, metered)
	}
	quota, err := e.Quota(ctx, operator, quotaName)
	if err != nil || len(quota.Keys) > 0 && quota.Keys[0].Held != 0 {
		t.Errorf("SI7: %+v, %v", quota.Keys, err)
	}
	if found, err := e.Integrity(ctx); err != nil || len(found.Differences) > 0 {
		t.Errorf("S42: %+v, %v", found.Differences, err)
	}
	t.Logf("%d tokens were used", metered)
}

// meteredUnder is what the executions on the budget's ledger have used by their own meters.
func meteredUnder(ctx context.Context, t *testing.T, e *engine.Engine) (sum int64) {
	t.Helper()
	for cursor := ""; ; {
		rows, next, err := e.BudgetSpend(ctx, operator, teamRef(), engine.SpendQuery{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			usage, err := e.Usage(ctx, client, row.ExecutionID.Given(), nil)
			if err != nil || usage.Usage["tokens"] != row.Used["tokens"] {
				t.Errorf("BI4: %s has used %v, on the ledger are %v: %v", row.ExecutionID, usage.Usage, row.Used, err)
			}
			sum += usage.Usage["tokens"]
		}
		if cursor = next; cursor == "" {
			return sum
		}
	}
}

// grabs is a process that waits for the signal to begin, takes all that it gets, says so, and holds on to it until it is killed.
func grabs(at string) error {
	ctx := context.Background()
	e, _, err := open(ctx, at)
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for {
				got, err := e.Claim(ctx, client, engine.ClaimRequest{
					WorkerID: "w", InstanceID: fmt.Sprintf("p%d-%d", os.Getpid(), n), Lanes: lanes[:1], Max: 13, TTL: grabTTL,
				})
				if err != nil {
					fmt.Println("violation:", err)
				}
				for _, task := range got.Tasks {
					fmt.Println("took", task.Execution.ID)
				}
				if len(got.Tasks) == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	fmt.Println("over")
	select {}
}

// grabTTL is how long they hold on: one that lapses before the last has looked would make room.
const grabTTL = base.Millis(8000)

// grab runs such a process until it gets nothing more, kills it, and returns what it took. It begins when all are open.
func grab(ctx context.Context, t *testing.T, at string, opened *sync.WaitGroup) (took []string) {
	isOpen := sync.OnceFunc(opened.Done)
	defer isOpen()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), storeVariable+"="+at, deedVariable+"=grab")
	out, err := cmd.StdoutPipe()
	in, inErr := cmd.StdinPipe()
	if err = errors.Join(err, inErr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "over"; {
		if lines.Text() == "open" {
			isOpen()
			opened.Wait()
			fmt.Fprintln(in, "begin")
			continue
		}
		id, ok := strings.CutPrefix(lines.Text(), "took ")
		if !ok {
			t.Error(lines.Text())
		}
		took = append(took, id)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return took
}

func TestB10_BI1_BI2_I9_a_thousand_attempts_of_two_processes_never_pass_a_limit_and_their_death_leaves_nothing(t *testing.T) {
	t.Parallel()
	const all, hard, each = 1000, 700, 7
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := cluster.Database(t)
	e, _ := mustOpen(ctx, t, at)
	putLimits(ctx, t, e, map[string]int64{"tokens": hard})
	var work []core.Submission
	for range all {
		work = append(work, core.Submission{Lane: lanes[0], Kind: "k", PolicyJSON: fmt.Appendf(nil, `{"max_reclaim_count":0,"budget_ids":["team"],"estimate":{"tokens":%d}}`, each)})
	}
	if _, err := e.SubmitMany(ctx, client, work, true); err != nil {
		t.Fatal(err)
	}
	var both, opened sync.WaitGroup
	took := make([][]string, 2)
	opened.Add(len(took))
	for i := range took {
		both.Go(func() { took[i] = grab(ctx, t, at, &opened) })
	}
	both.Wait()
	if n := len(took[0]) + len(took[1]); n != hard/each {
		t.Errorf("B10: %d and %d were taken, %d have room", len(took[0]), len(took[1]), hard/each)
	}
	lapsed := func() bool {
		budget, err := e.Budget(ctx, operator, teamRef())
		if err != nil {
			t.Fatal(err)
		}
		n := budget.Numbers["tokens"]
		if n.Used+n.Reserved > hard {
			t.Errorf("BI1: %+v", n)
		}
		return n.Reserved == 0 && budget.LiveHolds == 0 && n.Used == 0
	}
	for !lapsed() {
		if pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
			t.Fatal("BI2: what the dead had reserved is not given back")
		}
	}
	if found, err := e.Integrity(ctx); err != nil || len(found.Differences) > 0 {
		t.Errorf("BI2: %+v, %v", found.Differences, err)
	}
}

func TestS36_a_limit_that_is_put_in_one_process_holds_for_claims_of_every_other_from_its_commit_on(t *testing.T) {
	t.Parallel()
	onParties(t, func(p *party) {
		put := func(n, limit int) {
			if _, err := p.of(n).PutQuota(p.ctx, operator, quotaName, core.QuotaSettings{ConcurrencyLimit: limit}, engine.AdminAction{}); err != nil {
				p.t.Fatal(err)
			}
		}
		put(0, 1)
		for n := range 60 {
			if _, err := p.of(n).Submit(p.ctx, client, core.Submission{Lane: lanes[0], Kind: "k", PolicyJSON: []byte(`{"quotas":[{"quota":"q"}]}`)}); err != nil {
				p.t.Fatal(err)
			}
		}
		for round := range 12 {
			limit := 1 + round*5%4
			put(round, limit)
			got, err := p.of(round+1).Claim(p.ctx, client, engine.ClaimRequest{WorkerID: "w", InstanceID: "i", Lanes: lanes[:1], Max: 10, Wait: 20 * time.Second, TTL: base.Minute})
			if err != nil || len(got.Tasks) == 0 || len(got.Tasks) > limit {
				p.t.Fatalf("round %d: %d were taken under a limit of %d, %v", round, len(got.Tasks), limit, err)
			}
			for _, task := range got.Tasks {
				x := task.Execution
				f := core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
				if _, err := p.of(round+2).Complete(p.ctx, client, x.ID.Given(), f, nil); err != nil {
					p.t.Fatal(err)
				}
			}
		}
	})
}
