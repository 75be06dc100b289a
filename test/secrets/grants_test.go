package secrets

import (
	"fmt"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// grantsOverHTTP issues and uses grant keys by every route that does, and sends them to where they do not belong.
func (w *world) grantsOverHTTP() {
	w.t.Helper()
	worker := `"worker_id":"w","worker_instance_id":"w-1"`
	for range 3 {
		w.ask(&w.said, "POST", "/v1/executions", `{"kind":"granted","lane":"grants"}`)
	}
	key := func() string {
		return field(w.t, w.issue("POST", "/v1/work/grants", `{`+worker+`,"lanes":["grants"],"wait_ms":20000,"grant_ttl_ms":60000}`), "grant_key")
	}
	used, returned := key(), key()
	for _, body := range []string{
		`{"grant_key":"` + used + `0"}`, `{"grant_key":"` + used[:len(used)-1] + `"}`, `{"grant_kez":"` + used + `"}`, `{"grant_key":"` + used + `",`,
		`{"grant_key":"` + used[3:] + `"}`,
	} {
		for _, path := range []string{"verify", "return", "claim"} {
			if status, text := w.ask(&w.said, "POST", "/v1/work/grants/"+path, body); status < 400 {
				w.t.Errorf("%s is answered %d %s", path, status, text)
			}
		}
	}
	w.ask(&w.said, "POST", "/v1/work/grants/claim", `{"grant_key":"`+used+`","worker_id":"w","worker_instance_id":"w-2"}`)
	w.ask(&w.said, "POST", "/v1/work/grants/verify", `{"grant_key":"`+used+`"}`)
	if status, text := w.ask(&w.said, "POST", "/v1/work/grants/claim", `{"grant_key":"`+used+`",`+worker+`}`); status != 200 {
		w.t.Errorf("the claim is answered %d %s", status, text)
	}
	if status, text := w.ask(&w.said, "POST", "/v1/work/grants/return", `{"grant_key":"`+returned+`"}`, "Idempotency-Key", "back"+returned[len(returned)-16:]); status != 204 {
		w.t.Errorf("the return is answered %d %s", status, text)
	}
	w.ask(&w.said, "GET", "/v1/executions/"+used, "")
	w.ask(&w.said, "POST", "/v1/work/grants", `{`+worker+`,"execution_id":"`+used+`"}`)
	execution, _ := w.claimed()
	w.issue("POST", execution+"/revoke", `{"hand_to":{`+worker+`,"grant_ttl_ms":60000}}`, "Idempotency-Key", "hand"+execution[len(execution)-12:])
	w.issue("POST", execution+"/revoke", `{"hand_to":{`+worker+`,"grant_ttl_ms":60000}}`, "Idempotency-Key", "hand"+execution[len(execution)-12:])
}

// grantsInGo prints grants as programs do by accident.
func (w *world) grantsInGo() {
	w.t.Helper()
	work := w.client.Work()
	for range 2 {
		if _, err := w.client.Submit(w.ctx(), flowfabric.Submission{Kind: "granted", SubmitOptions: flowfabric.SubmitOptions{Lane: "grants-in-go"}}); err != nil {
			w.t.Fatal(err)
		}
	}
	grants, err := work.Grant(w.ctx(), api.GrantRequest{WorkerID: "w", InstanceID: "w-1", Lanes: []string{"grants-in-go"}, Max: 2})
	if err != nil || len(grants) != 2 {
		w.t.Fatalf("%v, %v", grants, err)
	}
	w.prints(grants, grants[0], &grants[0], grants[0].Key, api.Revocation{Grant: &grants[0]})
	for _, g := range grants {
		fmt.Fprintln(&w.shown, g.Key.Reveal())
	}
	_, err = work.ClaimGrant(w.ctx(), grants[0].Key, api.GrantClaim{WorkerID: "other", InstanceID: "w-1"})
	w.prints(err)
	task, err := work.ClaimGrant(w.ctx(), grants[0].Key, api.GrantClaim{WorkerID: "w", InstanceID: "w-1"})
	w.prints(task, err)
	w.prints(work.VerifyGrant(w.ctx(), grants[0].Key), work.ReturnGrant(w.ctx(), grants[1].Key), work.ReturnGrant(w.ctx(), grants[1].Key))
}
