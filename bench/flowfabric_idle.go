package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
)

// ffIdle measures what a process costs that has nothing to do: 100 claims wait in it.
func ffIdle(ctx context.Context, env Env) (*Sample, error) {
	address, remove, err := freshDatabase(ctx, env.Postgres)
	if err != nil {
		return nil, err
	}
	defer remove()
	client, err := flowfabric.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close(ctx) }()
	if err := submitInBulk(ctx, client, 1); err != nil {
		return nil, err
	}
	waitCtx, stop := context.WithCancel(ctx)
	group, waitCtx := errgroup.WithContext(waitCtx)
	for i := range 100 {
		group.Go(func() error { return waitForNothing(waitCtx, client, i) })
	}
	sample, err := watchIdle(ctx, address, time.Duration(env.Size(60))*time.Second)
	stop()
	return sample, errors.Join(err, group.Wait())
}

// waitForNothing claims work of a kind that nobody submits, again and again.
func waitForNothing(ctx context.Context, client flowfabric.Client, i int) error {
	for ctx.Err() == nil {
		_, err := client.Work().Claim(ctx, flowfabric.ClaimRequest{
			WorkerID: "idle", InstanceID: fmt.Sprintf("idle-%d", i), Lanes: []string{"default"}, Kinds: []string{"never"}, Wait: 30 * time.Second,
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watchIdle counts the transactions of a database and the processor time of this process.
func watchIdle(ctx context.Context, address string, d time.Duration) (*Sample, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	time.Sleep(3 * time.Second) // the start is not idle
	transactions, cpu, err := usage(ctx, conn)
	if err != nil {
		return nil, err
	}
	time.Sleep(d)
	after, cpuAfter, err := usage(ctx, conn)
	if err != nil {
		return nil, err
	}
	// The two looks themselves are transactions too; statistics lag by up to a second.
	return &Sample{Values: []Value{
		{Name: "transactions", Value: float64(after-transactions-1) / d.Seconds(), Unit: "1/s"},
		{Name: "cpu", Value: 100 * (cpuAfter - cpu).Seconds() / d.Seconds(), Unit: "% of a core"},
	}}, nil
}

func usage(ctx context.Context, conn *pgx.Conn) (transactions int64, cpu time.Duration, err error) {
	err = conn.QueryRow(ctx, "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()").Scan(&transactions)
	if err != nil {
		return 0, 0, err
	}
	var r syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return transactions, time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}

// ffSnapshot measures how long claims take while somebody holds an old snapshot, so that dead rows cannot be removed.
func ffSnapshot(ctx context.Context, env Env) (*Sample, error) {
	address, remove, err := freshDatabase(ctx, env.Postgres)
	if err != nil {
		return nil, err
	}
	defer remove()
	client, err := flowfabric.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close(ctx) }()
	before, err := churn(ctx, client, 10*time.Second)
	if err != nil {
		return nil, err
	}
	reader, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close(ctx) }()
	if _, err := reader.Exec(ctx, "begin isolation level repeatable read; select count(*) from pg_class"); err != nil {
		return nil, err
	}
	if _, err := churn(ctx, client, time.Duration(env.Size(110))*time.Second); err != nil {
		return nil, err
	}
	during, err := churn(ctx, client, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &Sample{Values: []Value{
		{Name: "claim.p99.before", Value: percentile(before, 0.99), Unit: "ms"},
		{Name: "claim.p99.during", Value: percentile(during, 0.99), Unit: "ms"},
	}}, nil
}

// churn submits, claims and completes in hundreds for a while and tells how long each claim took.
func churn(ctx context.Context, client flowfabric.Client, d time.Duration) ([]time.Duration, error) {
	var claims []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := submitInBulk(ctx, client, 100); err != nil {
			return nil, err
		}
		began := time.Now()
		answer, err := client.Work().Claim(ctx, flowfabric.ClaimRequest{WorkerID: "churn", InstanceID: "churn", Lanes: []string{"default"}, Max: 100})
		if err != nil {
			return nil, err
		}
		claims = append(claims, time.Since(began))
		items := make([]flowfabric.WorkItem, len(answer.Tasks))
		for i, task := range answer.Tasks {
			items[i] = flowfabric.WorkItem{Op: flowfabric.OpComplete, ID: task.ID, Lease: task.Lease}
		}
		if _, err := client.Work().Do(ctx, items...); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// percentile of durations, in milliseconds.
func percentile(all []time.Duration, p float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[min(int(p*float64(len(all))), len(all)-1)].Microseconds()) / 1000
}
