package flowfabric_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// forRender asks for grants for one worker.
func forRender(lane string) api.GrantRequest {
	return api.GrantRequest{WorkerID: "render", InstanceID: "render-1", Lanes: []string{lane}, Wait: patience, GrantTTL: time.Minute}
}

var render = api.GrantClaim{WorkerID: "render", InstanceID: "render-1"}

// granted submits into a lane and is given a grant of it.
func (w *world) granted(t *testing.T, lane string) api.Grant {
	t.Helper()
	ctx := inTime(t)
	id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("in"), flowfabric.SubmitOptions{Lane: lane}))).ID
	grants := must[[]api.Grant](t)(w.Work().Grant(ctx, forRender(lane)))
	if len(grants) != 1 || grants[0].ExecutionID != id {
		t.Fatalf("granted %v, want %s", grants, id)
	}
	return grants[0]
}

func TestU64_U65_a_broker_grants_and_a_worker_claims(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		g := w.granted(t, "default")
		if !strings.HasPrefix(g.Key.Reveal(), "pg:"+g.PartitionKey+":"+string(g.ExecutionID)+":") || g.Key.ExecutionID() != g.ExecutionID || g.ExpiresAt.IsZero() {
			t.Errorf("%+v", g)
		}
		if text := fmt.Sprintf("%v %+v %#v", g, &g, g.Key); strings.Contains(text, g.Key.Reveal()[len(g.Key.Reveal())-64:]) {
			t.Errorf("printed it shows itself: %s", text)
		}
		if err := w.Work().VerifyGrant(ctx, g.Key); err != nil {
			t.Fatal(err)
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, g.ExecutionID)); x.Status != flowfabric.StatusGranted {
			t.Errorf("%s", x.Status)
		}
		_, err := w.Work().ClaimGrant(ctx, g.Key, api.GrantClaim{WorkerID: "render", InstanceID: "render-2"})
		if flowfabric.CodeOf(err) != "grant_signature_mismatch" {
			t.Errorf("claimed by another: %v", err)
		}
		claimed := must[*api.Claimed](t)(w.Work().ClaimGrant(ctx, g.Key, render))
		if claimed.ID != g.ExecutionID || claimed.How != "fresh" || string(claimed.Input.Data) != "in" || claimed.Lease.InstanceID != "render-1" || claimed.Policy == nil {
			t.Errorf("%+v", claimed)
		}
		again := must[*api.Claimed](t)(w.Work().ClaimGrant(ctx, g.Key, render))
		if again.Lease.ID != claimed.Lease.ID {
			t.Errorf("S31: %+v, want %+v", again.Lease, claimed.Lease)
		}
		if err := w.Work().VerifyGrant(ctx, g.Key); flowfabric.CodeOf(err) != "grant_unknown" {
			t.Errorf("VerifyGrant of what was used = %v", err)
		}
		answers := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, api.WorkItem{Op: api.OpComplete, ID: claimed.ID, Lease: claimed.Lease}))
		if answers[0].Err != nil {
			t.Error(answers[0].Err)
		}
	})
}

func TestU64_a_named_execution_is_granted_and_what_cannot_be_is_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID
		ask := func(change func(*api.GrantRequest)) error {
			r := api.GrantRequest{WorkerID: "render", InstanceID: "render-1", ExecutionID: id}
			change(&r)
			grants, err := w.Work().Grant(ctx, r)
			if err == nil && (len(grants) != 1 || grants[0].ExecutionID != id) {
				t.Errorf("%v", grants)
			}
			return err
		}
		for want, change := range map[string]func(*api.GrantRequest){
			"lane_mismatch":       func(r *api.GrantRequest) { r.Lanes = []string{"other"} },
			"invalid_argument":    func(r *api.GrantRequest) { r.Lanes = []string{"default", "other"} },
			"invalid_id":          func(r *api.GrantRequest) { r.ExecutionID = "nonsense" },
			"execution_not_found": func(r *api.GrantRequest) { r.ExecutionID = "0190f0c2-1111-7aaa-8bbb-0123456789ab" },
		} {
			if err := ask(change); flowfabric.CodeOf(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if err := ask(func(r *api.GrantRequest) { r.RequestKey = "once" }); err != nil {
			t.Fatal(err)
		}
		if err := ask(func(r *api.GrantRequest) { r.RequestKey = "once" }); err != nil {
			t.Errorf("L117: repeated: %v", err)
		}
		if err := ask(func(*api.GrantRequest) {}); flowfabric.CodeOf(err) != "grant_outstanding" {
			t.Errorf("a second grant: %v", err)
		}
	})
}

func TestU65_S33_a_grant_is_returned_and_a_waiting_claim_gets_the_work(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		g := w.granted(t, "default")
		none := must[[]api.Grant](t)(w.Work().Grant(ctx, api.GrantRequest{WorkerID: "v", InstanceID: "v-1", Lanes: []string{"default"}}))
		if len(none) != 0 {
			t.Errorf("granted twice: %v", none)
		}
		if err := w.Work().ReturnGrant(ctx, g.Key); err != nil {
			t.Fatal(err)
		}
		if err := w.Work().ReturnGrant(ctx, g.Key); flowfabric.CodeOf(err) != "grant_unknown" {
			t.Errorf("returned twice: %v", err)
		}
		answer := must[api.ClaimAnswer](t)(w.Work().Claim(ctx, api.ClaimRequest{WorkerID: "v", InstanceID: "v-1", Lanes: []string{"default"}, Wait: patience}))
		if len(answer.Tasks) != 1 || answer.Tasks[0].ID != g.ExecutionID {
			t.Errorf("%+v", answer)
		}
	})
}

func TestU65_S31_of_many_who_claim_a_grant_one_lease_comes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		g := w.granted(t, "default")
		var wg sync.WaitGroup
		var mu sync.Mutex
		leases, refused := map[string]bool{}, 0
		for i := range 64 {
			by := render
			if i%2 == 1 {
				by.InstanceID = fmt.Sprintf("thief-%d", i)
			}
			wg.Go(func() {
				claimed, err := w.Work().ClaimGrant(ctx, g.Key, by)
				mu.Lock()
				defer mu.Unlock()
				switch code := flowfabric.CodeOf(err); {
				case err == nil:
					leases[claimed.Lease.ID] = true
				case code == "grant_signature_mismatch" || code == "grant_unknown":
					refused++
				default:
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if len(leases) != 1 || refused != 32 {
			t.Errorf("%d leases, %d refused", len(leases), refused)
		}
	})
}

func TestU50_L113_revoke_hands_the_work_to_a_worker(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		policy := &flowfabric.Policy{Capabilities: []string{"gpu"}}
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Policy: policy}))).ID
		must[*api.Claimed](t)(w.Operate().Claim(ctx, id))
		to := api.Handoff{WorkerID: "render", InstanceID: "render-1", GrantTTL: time.Minute}
		revoke := func() api.Revocation {
			return must[api.Revocation](t)(w.Operate().Revoke(ctx, id, ops.RevokeOptions{Handoff: &to}))
		}
		answer := revoke()
		if answer.Outcome != "revoked" || answer.Grant != nil || flowfabric.CodeOf(answer.HandToErr) != "capability_mismatch" || answer.Cause != "capability_mismatch" {
			t.Errorf("%+v", answer)
		}
		to.Capabilities = []string{"gpu"}
		must[*api.Claimed](t)(w.Operate().Claim(ctx, id))
		answer = revoke()
		if answer.Outcome != "revoked" || answer.HandToErr != nil || answer.Grant == nil {
			t.Fatalf("%+v", answer)
		}
		if again := revoke(); again.Outcome != "already_satisfied" || again.Grant == nil || again.Grant.Key.Reveal() != answer.Grant.Key.Reveal() {
			t.Errorf("L117: %+v", again)
		}
		claimed := must[*api.Claimed](t)(w.Work().ClaimGrant(ctx, answer.Grant.Key, render))
		if claimed.How != "reclaimed" {
			t.Errorf("%+v", claimed)
		}
	})
}

func TestS29_U64_without_a_signing_key_there_are_no_grants(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		keys := w.Admin().SigningKeys()
		list := must[api.SigningKeyList](t)(keys.List(ctx))
		must[api.RevokedKey](t)(keys.Revoke(ctx, list.CurrentKid, ops.RevokeKeyOptions{Force: true}))
		if _, err := w.Work().Grant(ctx, forRender("default")); flowfabric.CodeOf(err) != "signing_key_missing" {
			t.Errorf("%v, want signing_key_missing", err)
		}
	})
}
