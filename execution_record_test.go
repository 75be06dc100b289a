package flowfabric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestL120_an_execution_shows_what_its_record_decides_by(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		shown := func(id flowfabric.ID) *flowfabric.Execution {
			t.Helper()
			return must[*flowfabric.Execution](t)(w.Get(ctx, id))
		}
		do := func(item api.WorkItem) {
			t.Helper()
			if answers := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, item)); answers[0].Err != nil {
				t.Fatal(answers[0].Err)
			}
		}
		must[*api.Quota](t)(w.Quotas().Put(ctx, "one", api.QuotaSettings{ConcurrencyLimit: 1}))
		limited := flowfabric.SubmitOptions{Quotas: []api.QuotaUse{{Quota: "one"}}, Policy: &flowfabric.Policy{AttemptTimeout: time.Hour}}

		first := w.submitted(t, limited)
		if x := shown(first); x.Next != "initial" || x.LeaseEpoch != 0 || x.LastLease != nil || x.Grant != nil || !x.RunStartedAt.IsZero() || x.Slots != nil || x.BlockedOn != "" {
			t.Errorf("submitted: %+v", x)
		}
		task := w.claimed(t, "h1")
		x := shown(first)
		if x.Next != "" || x.LeaseEpoch != 1 || x.LastLease != nil || !cmp.Equal(x.Slots, []string{"slots:one"}) || !x.RunStartedAt.Equal(x.StartedAt) ||
			!x.AttemptDeadlineAt.Equal(x.Lease.AcquiredAt.Add(time.Hour)) || x.AttemptRemaining != 0 || x.WakeAt.IsZero() {
			t.Errorf("running: %+v", x)
		}

		second := w.submitted(t, limited)
		if answer := must[api.ClaimAnswer](t)(w.Work().Claim(ctx, api.ClaimRequest{WorkerID: "hand", InstanceID: "h2", Lanes: []string{"default"}})); len(answer.Tasks) != 0 {
			t.Fatalf("claimed %d", len(answer.Tasks))
		}
		if x := shown(second); x.BlockedOn != "slots:one" || x.Reason != "waiting_for_quota" || x.Next != "initial" {
			t.Errorf("blocked: %+v", x)
		}

		do(api.WorkItem{Op: api.OpDelay, ID: first, Lease: task.Lease, Delay: 30 * time.Minute})
		x = shown(first)
		want := &api.EndedLease{ID: task.Lease.ID, Epoch: 1, AttemptID: task.Lease.AttemptID, EndedAt: x.StatusSince, End: "delay"}
		if x.Next != "resume" || x.DelayReason == "" || x.DelayReason != x.Reason || x.Slots != nil || !x.AttemptDeadlineAt.IsZero() ||
			x.AttemptRemaining <= 0 || x.AttemptRemaining > time.Hour || !x.WakeAt.Equal(x.DelayUntil) || !cmp.Equal(x.LastLease, want) {
			t.Errorf("delayed: %+v\nlast lease %+v, want %+v", x, x.LastLease, want)
		}

		grants := must[[]api.Grant](t)(w.Work().Grant(ctx, api.GrantRequest{WorkerID: "render", InstanceID: "r1", Lanes: []string{"default"}, GrantTTL: time.Minute, Wait: 20 * time.Second}))
		x = shown(second)
		if len(grants) != 1 || x.Grant == nil || x.Grant.Kid == "" || x.Grant.WorkerID != "render" || x.Grant.InstanceID != "r1" ||
			!x.Grant.ExpiresAt.Equal(grants[0].ExpiresAt) || !x.Grant.IssuedAt.Equal(x.StatusSince) || x.BlockedOn != "" || !cmp.Equal(x.Slots, []string{"slots:one"}) {
			t.Errorf("granted: %+v\n%+v", x, x.Grant)
		}
		if text := string(must[[]byte](t)(x.MarshalJSON())); strings.Contains(text, grants[0].Key.Reveal()) {
			t.Error("a reader is shown the key of the grant")
		}

		must[*flowfabric.Execution](t)(w.Cancel(ctx, first, "", flowfabric.CancelOptions{}))
		began := shown(first).RunStartedAt
		must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, first, ops.ReplayOptions{}))
		if x := shown(first); began.IsZero() || !x.RunStartedAt.IsZero() || x.StartedAt.IsZero() || x.Next != "replay" || x.LastLease != nil || x.LeaseEpoch != 1 {
			t.Errorf("replayed: %+v", x)
		}
	})
}
