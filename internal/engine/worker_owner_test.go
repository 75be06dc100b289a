package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// byKey is a worker with an API key. Two keys may have one name.
func byKey(id, name string, namespaces ...string) engine.Caller {
	return engine.Caller{Principal: name, KeyID: id, Actor: "worker", Namespaces: namespaces}
}

func TestS49_U103_a_live_instance_is_of_the_key_that_registered_it_and_no_other_key_changes_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		fleet := byKey("k1", "fleet")
		r := core.Registration{WorkerID: "f", InstanceID: "f-1", Lanes: []string{"pay"}, LivenessTTLMS: 60_000}
		must(w.e.Register(w.ctx(), fleet, r))(t)
		before := must(w.e.Worker(w.ctx(), client, "f-1"))(t)
		for name, thief := range map[string]engine.Caller{
			"another tenant's": byKey("k2", "b-work", "b"), "of the same name": byKey("k3", "fleet"), "of no key": {Principal: "fleet", Actor: "worker"},
		} {
			other := core.Registration{WorkerID: "f", InstanceID: "f-1", Lanes: []string{"mail"}, LivenessTTLMS: 1000}
			_, err := w.e.Register(w.ctx(), thief, other)
			same(t, name+": told", len(refused(t, err, base.CodeInstanceIDTaken).Details), 0)
			claim := ask()
			claim.WorkerID, claim.InstanceID, claim.Lanes = "f", "f-1", []string{"mail"}
			_, err = w.e.Claim(w.ctx(), thief, claim)
			refused(t, err, base.CodeInstanceIDTaken)
			same(t, name+": heartbeat", must(w.e.Heartbeat(w.ctx(), thief, "f-1", nil))(t).Registered, false)
			thief.OwnInstances = true
			refused(t, w.e.Drain(w.ctx(), thief, "", "f-1", true), base.CodeWorkerNotRegistered)
			refused(t, w.e.Drain(w.ctx(), thief, "f", "", true), base.CodeWorkerNotRegistered)
			refused(t, w.e.Leave(w.ctx(), thief, "f-1"), base.CodeWorkerNotRegistered)
			refused(t, w.e.MarkDead(w.ctx(), thief, "f-1", "r", true), base.CodeWorkerNotRegistered)
		}
		same(t, "the record", must(w.e.Worker(w.ctx(), client, "f-1"))(t), before)
		r.Version = "2" // its own key, also after a rotation, which keeps the id
		same(t, "its own key", must(w.e.Register(w.ctx(), fleet, r))(t).Outcome, "refreshed")
	})
}

func TestS49_an_instance_whose_owner_is_gone_is_taken_over_only_by_a_key_of_all_its_namespaces(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := core.Registration{WorkerID: "f", InstanceID: "f-1", LivenessTTLMS: 1000}
		for instance, c := range map[string]struct {
			owner, next engine.Caller
			takes       bool
		}{
			"all-one":  {byKey("k1", "fleet"), byKey("k2", "b", "b"), false},
			"two-one":  {byKey("k1", "fleet", "a", "b"), byKey("k2", "b", "b"), false},
			"one-one":  {byKey("k1", "a", "b"), byKey("k2", "b", "b"), true},
			"one-two":  {byKey("k1", "a", "b"), byKey("k2", "b", "a", "b"), true},
			"two-all":  {byKey("k1", "fleet", "a", "b"), byKey("k2", "fleet"), true},
			"disjoint": {byKey("k1", "a", "a"), byKey("k2", "b", "b"), false},
		} {
			r.InstanceID = instance
			must(w.e.Register(w.ctx(), c.owner, r))(t)
			w.turn(1000)
			_, err := w.e.Register(w.ctx(), c.next, r)
			claim := ask()
			claim.WorkerID, claim.InstanceID = "f", instance
			_, claimErr := w.e.Claim(w.ctx(), c.next, claim)
			if !c.takes {
				refused(t, err, base.CodeInstanceIDTaken)
				refused(t, claimErr, base.CodeInstanceIDTaken)
				same(t, instance+" comes back", must(w.e.Register(w.ctx(), c.owner, r))(t).Outcome, "refreshed")
				continue
			}
			ok(t, err)
			ok(t, claimErr)
			_, err = w.e.Register(w.ctx(), c.owner, r)
			refused(t, err, base.CodeInstanceIDTaken)
		}
	})
}

func TestS52_who_takes_an_instance_over_has_no_power_over_the_leases_of_its_owner_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first, second := byKey("k1", "w", "default"), byKey("k2", "w", "default")
		second.OwnInstances = true
		id := w.submit(core.Submission{})
		r := ask()
		r.RequestKey, r.TTL = "again", base.Hour
		theirs := must(w.e.Claim(w.ctx(), first, r))(t).Tasks
		same(t, "claimed", given(theirs[0]), id)
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", false))
		must(w.e.Register(w.ctx(), second, core.Registration{WorkerID: "w", InstanceID: "w1"}))(t) // in the same millisecond
		same(t, "the same claim again", len(must(w.e.Claim(w.ctx(), second, r))(t).Tasks), 0)
		refused(t, func() error {
			_, err := w.e.Reclaim(w.ctx(), second, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "w1", RequestKey: "again"})
			return err
		}(), base.CodeLeaseConflict)
		w.turn(1)
		own := w.submit(core.Submission{})
		r.RequestKey = ""
		same(t, "its own", given(must(w.e.Claim(w.ctx(), second, r))(t).Tasks[0]), own)
		ok(t, w.e.MarkDead(w.ctx(), second, "w1", "mine", true))
		same(t, "the other's lease", w.get(id).Status, core.Running)
		same(t, "its own lease", w.get(own).Status, core.Ready)
		must(w.e.Complete(w.ctx(), first, given(theirs[0]), fence(theirs[0]), nil))(t)
	})
}

// forgetOwner leaves of the owner of an instance what older versions wrote.
func (w *world) forgetOwner(instance string) {
	w.t.Helper()
	ref := store.DocRef{Kind: 1, Key: instance}
	doc := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{ref}}))(w.t).Docs[ref]
	fields := map[string]any{}
	ok(w.t, json.Unmarshal(doc.Body, &fields))
	delete(fields, "owner")
	doc.Body = must(json.Marshal(fields))(w.t)
	w.tamper(store.Changes{PutDocs: []store.Doc{doc}})
}

func TestS49_an_instance_of_an_older_version_is_the_first_key_s_of_its_name(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		must(w.e.Register(w.ctx(), byKey("k1", "fleet"), core.Registration{WorkerID: "f", InstanceID: "f-1"}))(t)
		w.forgetOwner("f-1")
		_, err := w.e.Register(w.ctx(), byKey("k2", "other"), core.Registration{WorkerID: "f", InstanceID: "f-1"})
		refused(t, err, base.CodeInstanceIDTaken)
		same(t, "a sign of life", must(w.e.Heartbeat(w.ctx(), byKey("k1", "fleet"), "f-1", nil))(t).Registered, true)
		_, err = w.e.Register(w.ctx(), byKey("k3", "fleet"), core.Registration{WorkerID: "f", InstanceID: "f-1"})
		refused(t, err, base.CodeInstanceIDTaken)
	})
}

func TestS49_a_grant_for_an_unknown_instance_does_not_keep_its_id_from_the_worker(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		promised := ask()
		promised.GrantTTL = 60_000
		grants := must(w.e.Grant(w.ctx(), byKey("k1", "scheduler", "default"), promised))(t)
		worker := byKey("k2", "worker", "default")
		must(w.e.Register(w.ctx(), worker, core.Registration{WorkerID: "w", InstanceID: "w1"}))(t)
		must(w.e.ClaimGrant(w.ctx(), worker, grants[0].Key, engine.GrantClaim{WorkerID: "w", InstanceID: "w1"}))(t)
	})
}

func TestS49_U103_an_instance_is_its_owner_s_whatever_namespaces_a_claim_names(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := ask()
		r.Namespaces = []string{"a"}
		must(w.e.Claim(w.ctx(), engine.Caller{Principal: "me", Actor: "client"}, r))(t)
		r.Namespaces = nil
		narrower := engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{"b"}}
		must(w.e.Claim(w.ctx(), narrower, r))(t)
		other := narrower
		other.Principal = "another"
		_, err := w.e.Claim(w.ctx(), other, r)
		refused(t, err, base.CodeInstanceIDTaken)
	})
}
