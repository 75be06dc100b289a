package bench

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// ffHold is how long a reader holds its snapshot, ffLook how long claims are measured before, and at the end of that.
const (
	ffHold = 120 * time.Second
	ffLook = 10 * time.Second
)

// ffSnapshot measures how long claims take while somebody holds an old snapshot, so that dead rows cannot be removed.
func ffSnapshot(ctx context.Context, env Env) (*Sample, error) {
	sample := &Sample{}
	err := inProcess.on(ctx, env.Postgres, func(ctx context.Context, address string, client *flowfabric.Client) error {
		look, hold := env.Span(ffLook), env.Span(ffHold)
		if env.Hold > 0 {
			hold = env.Hold
		}
		before, err := churn(ctx, client, look)
		if err != nil {
			return err
		}
		reader, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		defer func() { _ = reader.Close(ctx) }()
		if _, err := reader.Exec(ctx, "begin isolation level repeatable read; select count(*) from pg_class"); err != nil {
			return err
		}
		if _, err := churn(ctx, client, max(hold-look, 0)); err != nil {
			return err
		}
		during, err := churn(ctx, client, look)
		sample.Latency("claim.before", before)
		sample.Latency("claim.during", during)
		return err
	})
	return sample, err
}

// churn submits, claims and completes in hundreds for a while and tells how long each claim took.
func churn(ctx context.Context, client *flowfabric.Client, d time.Duration) ([]time.Duration, error) {
	var claims []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := submitInBulk(ctx, client, 100, freely); err != nil {
			return nil, err
		}
		began := time.Now()
		answer, err := client.Work().Claim(ctx, api.ClaimRequest{WorkerID: "churn", InstanceID: "churn", Lanes: []string{"default"}, Max: 100})
		if err != nil {
			return nil, err
		}
		claims = append(claims, time.Since(began))
		items := make([]api.WorkItem, len(answer.Tasks))
		for i, task := range answer.Tasks {
			items[i] = api.WorkItem{Op: api.OpComplete, ID: task.ID, Lease: task.Lease}
		}
		if _, err := client.Work().Do(ctx, items...); err != nil {
			return nil, err
		}
	}
	return claims, nil
}
