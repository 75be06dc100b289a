package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestE39_E35_an_endpoint_gets_what_its_filter_keeps_of_its_namespace_from_its_creation_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.inFlight = 1 // so that they arrive in order
		r := w.listening(nil, w.e)
		w.submit(core.Submission{Namespace: "acme"})
		all, some := w.hooked("acme", hereURL, webhook.Filter{}), w.hooked("acme", thereURL, webhook.Filter{Kinds: []string{"lease."}, Lane: "mail"})
		other := w.hooked("umbrella", "https://umbrella.example/", webhook.Filter{})
		w.submit(core.Submission{Namespace: "other"})
		first := w.submit(core.Submission{Namespace: "acme", Lane: "mail"})
		w.claimAs(engine.ClaimRequest{WorkerID: "w", InstanceID: "w1", Lanes: []string{"mail"}})
		w.settledHook(all.ID, 2)
		w.settledHook(some.ID, 1)
		got := slices.DeleteFunc(r.kinds(hereURL), func(kind string) bool { return strings.HasPrefix(kind, "webhook.") })
		same(t, "all events of the namespace, in order", got, []string{"execution.submitted", "lease.acquired"})
		same(t, "those of the filter", r.kinds(thereURL), []string{"lease.acquired"})
		same(t, "another tenant", r.kinds("https://umbrella.example/"), []string{})
		same(t, "its deliveries", len(w.deliveries(other.ID, "")), 0)
		q := r.requests(thereURL)[0]
		ev := w.events(engine.EventFilter{Kinds: []string{"lease.acquired"}})[0]
		same(t, "webhook-id (E40)", q.ID, ev.ID.String())
		if body := string(q.Body); !strings.Contains(body, `"execution_id":"`+first.ID().String()) || !strings.Contains(body, ev.Cursor) {
			t.Errorf("the body is %s", body)
		}
	})
}

func TestE44_an_endpoint_gets_no_events_about_itself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		one := w.hooked("acme", hereURL, webhook.Filter{Kinds: []string{"webhook."}})
		two := w.hooked("acme", thereURL, webhook.Filter{Kinds: []string{"webhook."}})
		most := 9
		must(w.e.ChangeWebhook(w.ctx(), operator, one.ID, webhook.Patch{MaxInFlight: &most}, nil, engine.AdminAction{}))(t)
		w.settledHook(two.ID, 1)
		same(t, "of the other", r.kinds(thereURL), []string{"webhook.updated"})
		w.settledHook(one.ID, 1)
		same(t, "of itself", r.kinds(hereURL), []string{"webhook.created"})
	})
}

func TestE43_attempts_follow_after_the_stated_times_and_the_tenth_failure_is_the_end(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Draw: func() float64 { return 0.5 }}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		r.answers(answering(500))
		hook := w.hooked("acme", hereURL, submittedOnly)
		told := w.toldOf("webhook.delivery_failed", nil)
		w.submit(core.Submission{Namespace: "acme"})
		for failures := 1; failures < webhook.MaxAttempts; failures++ {
			var d webhook.Delivery
			eventually(t, "the attempt is recorded", func() bool {
				if all := w.deliveries(hook.ID, ""); len(all) == 1 {
					d = all[0]
				}
				return d.Attempts == failures
			})
			pause, _ := webhook.Delay(failures, 0.5)
			same(t, "the next attempt", d.DueAt, w.now().Add(pause.Milliseconds()))
			if d.Last.Status != 500 || string(d.Last.Answer) != "as told" || d.Last.DurationMS != 3 || d.State != webhook.Pending {
				t.Errorf("attempt %d: %+v %+v", failures, d, d.Last)
			}
			w.turnTo(d.DueAt.Add(-1))
			same(t, "requests before it is due", len(r.requests(hereURL)), failures)
			w.pass(1)
		}
		eventually(t, "the delivery is dead", func() bool { return len(w.deliveries(hook.ID, webhook.Dead)) == 1 })
		same(t, "requests", len(r.requests(hereURL)), 10)
		same(t, "webhook-id of all attempts", len(slices.Compact(idsOf(r.requests(hereURL)))), 1)
		same(t, "events", told(), 1)
		ev := w.events(engine.EventFilter{Kinds: []string{"webhook.delivery_failed"}})[0]
		same(t, "its data", string(ev.Data.JSON()), `{"endpoint_id":"`+hook.ID.String()+`","event_id":"`+r.requests(hereURL)[0].ID+`","last_status":500}`)
	})
}

func idsOf(all []webhook.Request) (ids []string) {
	for _, q := range all {
		ids = append(ids, q.ID)
	}
	return ids
}

func TestE43_a_receiver_that_is_gone_disables_its_endpoint_and_cancels_what_is_pending(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		r.answers(answering(500))
		hook := w.hooked("acme", hereURL, submittedOnly)
		for range 20 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		eventually(t, "all have failed once", func() bool { return w.hook(hook.ID).Queue.Retrying == 20 })
		r.answers(answering(410))
		w.pass(7000)
		eventually(t, "all are cancelled", func() bool { return len(w.deliveries(hook.ID, webhook.Cancelled)) == 20 })
		after := w.hook(hook.ID)
		same(t, "state", []string{after.State, after.Reason}, []string{webhook.StateDisabled, webhook.ReasonGone})
		same(t, "pending", after.Queue.Pending(), 0)
		same(t, "told", string(w.events(engine.EventFilter{Kinds: []string{"webhook.disabled"}})[0].Data.JSON()), `{"endpoint_id":"`+hook.ID.String()+`","reason":"gone"}`)
		before := len(r.requests(hereURL))
		w.submit(core.Submission{Namespace: "acme"})
		w.pass(600_000)
		same(t, "requests to a disabled endpoint", len(r.requests(hereURL)), before)
	})
}

func TestE43_an_endpoint_that_fails_for_five_days_is_disabled(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		r.answers(answering(500))
		hook := w.hooked("acme", hereURL, submittedOnly)
		w.submit(core.Submission{Namespace: "acme"})
		eventually(t, "it is dead", func() bool {
			if d := w.deliveries(hook.ID, ""); len(d) == 1 && d[0].State == webhook.Pending && d[0].DueAt > w.now() {
				w.turnTo(d[0].DueAt)
				w.pass(1)
			}
			return len(w.deliveries(hook.ID, webhook.Dead)) == 1
		})
		same(t, "before five days are over", w.hook(hook.ID).State, webhook.StateActive)
		w.turnTo(w.hook(hook.ID).Queue.FailingSince.Add(webhook.FailingAfter))
		w.submit(core.Submission{Namespace: "acme"})
		eventually(t, "it is disabled", func() bool { return w.hook(hook.ID).Reason == webhook.ReasonFailing })
		same(t, "what was pending stays", w.pendingOf(hook.ID), 1)
		r.answers(taken204)
		_, _, err := w.e.EnableWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{})
		ok(t, err)
		w.pass(6500)
		w.settledHook(hook.ID, 1)
	})
}

func TestE43_a_receiver_that_is_busy_gets_one_request_at_a_time_until_the_next_success(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		r.answers(func(context.Context, webhook.Request) webhook.Answer {
			return webhook.Answer{Status: 503, RetryAfter: time.Hour}
		})
		w.submit(core.Submission{Namespace: "acme"})
		eventually(t, "it has failed", func() bool { return w.hook(hook.ID).Queue.Slow })
		same(t, "Retry-After is longer", w.deliveries(hook.ID, "")[0].DueAt, w.now().Add(base.Hour))
		r.mu.Lock()
		clear(r.most)
		r.mu.Unlock()
		for range 20 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		eventually(t, "all have failed", func() bool { return w.hook(hook.ID).Queue.Retrying == 21 })
		same(t, "requests at a time", r.mostOf(hereURL), 1)
		r.answers(taken204)
		w.pass(base.Hour + base.Second)
		w.settledHook(hook.ID, 21)
		same(t, "after a success", w.hook(hook.ID).Queue.Slow, false)
	})
}

func TestE41_a_replaced_secret_signs_until_its_overlap_ends(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		next := webhook.NewSecret([]byte(strings.Repeat("n", 32)))
		_, own, err := w.e.RotateWebhook(w.ctx(), operator, hook.ID, next, base.Minute, engine.AdminAction{})
		ok(t, err)
		same(t, "the new secret is shown", own, true)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 1)
		w.turn(base.Minute)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 2)
		signing := func(i int) (texts []string) {
			for _, s := range r.requests(hereURL)[i].Secrets {
				texts = append(texts, string(s.Bytes()[:1]))
			}
			return texts
		}
		same(t, "within the overlap, then after it", [][]string{signing(0), signing(1)}, [][]string{{"n", "k"}, {"n"}})
		_, _, err = w.e.RotateWebhook(w.ctx(), operator, hook.ID, next, webhook.MaxOverlap+1, engine.AdminAction{})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestE46_an_endpoint_that_is_enabled_goes_on_where_it_stopped(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.inFlight = 1 // so that they arrive in order
		r := w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 1)
		off := webhook.StateDisabled
		v := must(w.e.ChangeWebhook(w.ctx(), operator, hook.ID, webhook.Patch{}, &off, engine.AdminAction{}))(t)
		same(t, "disabled", []string{v.State, v.Reason}, []string{"disabled", "operator"})
		other := w.hooked("acme", thereURL, submittedOnly) // the log is read on for it
		for range 3 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		w.settledHook(other.ID, 3)
		same(t, "requests while it is disabled", len(r.requests(hereURL)), 1)
		_, note, err := w.e.EnableWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{})
		ok(t, err)
		same(t, "nothing is lost", note, "")
		w.settledHook(hook.ID, 4)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 5)
		same(t, "each event once, in order", idsOf(r.requests(hereURL)), w.eventIDs("execution.submitted"))
	})
}

// eventIDs are the ids of all events of a kind.
func (w *world) eventIDs(kind string) (ids []string) {
	w.t.Helper()
	for _, ev := range w.events(engine.EventFilter{Kinds: []string{kind}}) {
		ids = append(ids, ev.ID.String())
	}
	return ids
}

func TestE39_a_part_of_the_log_is_sent_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.inFlight = 1 // so that they arrive in order
		r := w.listening(nil, w.e)
		for range 5 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		w.submit(core.Submission{Namespace: "other"})
		hook := w.hooked("acme", hereURL, submittedOnly)
		all := w.events(engine.EventFilter{Kinds: []string{"execution.submitted"}})
		ok(t, w.e.ReplayWebhook(w.ctx(), operator, hook.ID, all[0].Cursor, all[3].Cursor, engine.AdminAction{}))
		w.settledHook(hook.ID, 3)
		same(t, "the part", idsOf(r.requests(hereURL)), []string{all[1].ID.String(), all[2].ID.String(), all[3].ID.String()})
		ok(t, w.e.ReplayWebhook(w.ctx(), operator, hook.ID, "start", "end", engine.AdminAction{}))
		w.settledHook(hook.ID, 8)
		same(t, "all of the namespace", idsOf(r.requests(hereURL))[3:], w.eventIDs("execution.submitted")[:5])
		refused(t, w.e.ReplayWebhook(w.ctx(), operator, hook.ID, "nonsense", "end", engine.AdminAction{}), base.CodeInvalidCursor)
		refused(t, w.e.ReplayWebhook(w.ctx(), operator, hook.ID, all[3].Cursor, all[0].Cursor, engine.AdminAction{}), base.CodeInvalidCursor)
	})
}

func TestE46_a_delivery_is_sent_again_and_a_test_is_sent_as_any_event(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 1)
		first := w.deliveries(hook.ID, webhook.Done)[0]
		again := must(w.e.Redeliver(w.ctx(), operator, hook.ID, first.ID, engine.AdminAction{}))(t)
		same(t, "it is pending", again.State, webhook.Pending)
		eventually(t, "it was sent again", func() bool { return w.deliveries(hook.ID, "")[0].Attempts == 2 })
		w.settledHook(hook.ID, 1)
		tested := must(w.e.TestWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{}))(t)
		w.settledHook(hook.ID, 2)
		same(t, "kinds", r.kinds(hereURL), []string{"execution.submitted", "execution.submitted", "webhook.test"})
		same(t, "ids", idsOf(r.requests(hereURL)), []string{first.EventID.String(), first.EventID.String(), tested.EventID.String()})
		_, err := w.e.Redeliver(w.ctx(), operator, hook.ID, hook.ID, engine.AdminAction{})
		refused(t, err, base.CodeDeliveryNotFound)
		stranger := operator
		stranger.Namespaces = []string{"umbrella"}
		_, err = w.e.Redeliver(w.ctx(), stranger, hook.ID, first.ID, engine.AdminAction{})
		refused(t, err, base.CodeWebhookNotFound)
		_, _, err = w.e.Deliveries(w.ctx(), stranger, hook.ID, "", "", nil)
		refused(t, err, base.CodeWebhookNotFound)
		list, _, err := w.e.Webhooks.Webhooks(w.ctx(), stranger, "", nil)
		ok(t, err)
		same(t, "a stranger's list", len(list), 0)
	})
}

func TestE46_a_delivery_that_is_being_recorded_is_found_to_be_sent_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		var under sync.WaitGroup
		for range 8 {
			under.Go(func() {
				for range 15 { // each record moves to where deliveries are that were made, at the moment at which it is looked for
					tested, err := w.e.TestWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{})
					if err == nil {
						_, err = w.e.Redeliver(w.ctx(), operator, hook.ID, tested.ID, engine.AdminAction{})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		under.Wait()
		w.settledHook(hook.ID, 120)
	})
}

func TestE39_a_deleted_endpoint_leaves_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		r.answers(answering(500))
		hook := w.hooked("acme", hereURL, webhook.Filter{})
		for range 5 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		eventually(t, "all have failed", func() bool { return w.hook(hook.ID).Queue.Retrying == 5 })
		ok(t, w.e.DeleteWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{RequestKey: "k1"}))
		ok(t, w.e.DeleteWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{RequestKey: "k1"}))
		refused(t, w.e.DeleteWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{}), base.CodeWebhookNotFound)
		_, err := w.e.Webhook(w.ctx(), operator, hook.ID)
		refused(t, err, base.CodeWebhookNotFound)
		eventually(t, "nothing is left", func() bool {
			return w.left(50)+w.left(51)+w.left(52)+w.left(54)+w.left(55) == 0
		})
	})
}

func TestE42_a_crash_between_request_and_record_repeats_the_delivery_and_two_servers_never_work_on_it_at_once(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		release := make(chan struct{})
		r.answers(func(context.Context, webhook.Request) webhook.Answer {
			<-release
			return webhook.Answer{Status: 200}
		})
		defer func() {
			select {
			case <-release:
			default:
				close(release)
			}
		}()
		hook := w.hooked("acme", hereURL, submittedOnly)
		w.submit(core.Submission{Namespace: "acme"})
		eventually(t, "it is under way", func() bool { return len(r.requests(hereURL)) == 1 })
		other := w.another()
		r2 := w.listening(nil, other)
		w.pass(webhook.LeaseMS - base.Second)
		same(t, "requests of the other while the lease is good", len(r2.requests(hereURL)), 0)
		// The first process stands still: its lease ends.
		w.turning(base.Second, "the other has delivered it", func() bool { return len(w.deliveries(hook.ID, webhook.Done)) == 1 })
		same(t, "the same event", r2.requests(hereURL)[0].ID, r.requests(hereURL)[0].ID)
		close(release)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 2)
		same(t, "what the late one records counts for nothing", w.hook(hook.ID).Queue.Done, 2)
	})
}

func TestE42_an_engine_that_stops_leaves_its_deliveries_to_the_next(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.inFlight = 1 // so that they arrive in order
		r := w.listening(nil, w.e)
		r.answers(func(ctx context.Context, _ webhook.Request) webhook.Answer {
			<-ctx.Done()
			return webhook.Answer{Err: webhook.ErrInterrupted}
		})
		hook := w.hooked("acme", hereURL, submittedOnly)
		for range 30 {
			w.submit(core.Submission{Namespace: "acme"})
		}
		eventually(t, "requests are under way", func() bool { return len(r.requests(hereURL)) == 1 })
		w.restart()
		r = w.listening(nil, w.e)
		w.pass(100)
		w.settledHook(hook.ID, 30)
		for _, d := range w.deliveries(hook.ID, webhook.Done) {
			same(t, "an attempt that was interrupted does not count", d.Attempts, 1)
		}
		same(t, "in order", idsOf(r.requests(hereURL))[0], w.eventIDs("execution.submitted")[0])
	})
}

func TestEI13_several_servers_deliver_every_event_and_a_dead_receiver_delays_no_other(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		stuck := make(chan struct{})
		t.Cleanup(func() { close(stuck) })
		r.answers(func(ctx context.Context, q webhook.Request) webhook.Answer {
			if q.URL == thereURL {
				select {
				case <-stuck:
				case <-ctx.Done():
				}
				return webhook.Answer{Err: webhook.ErrTimeout}
			}
			return webhook.Answer{Status: 200}
		})
		w.listening(r, w.another(), w.another())
		live, dead := w.hooked("acme", hereURL, submittedOnly), w.hooked("acme", thereURL, submittedOnly)
		for range 10 {
			w.submitMany(30, core.Submission{Namespace: "acme"})
		}
		w.settledHook(live.ID, 300)
		got := idsOf(r.requests(hereURL))
		slices.Sort(got)
		want := w.eventIDs("execution.submitted")
		slices.Sort(want)
		same(t, "every event once: nothing crashed", got, want)
		if n := r.mostOf(hereURL); n > webhook.DefaultInFlight {
			t.Errorf("%d requests at a time to one endpoint", n)
		}
		eventually(t, "what the dead one did not take waits", func() bool { return w.pendingOf(dead.ID) == 300 })
	})
}

func TestW24_U130_webhook_secrets_are_sealed_and_open_under_an_exchanged_master_key(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		hook := w.hooked("acme", hereURL, submittedOnly)
		for _, s := range w.hook(hook.ID).Secrets {
			if !strings.HasPrefix(s.Sealed, "sealed:") || strings.Contains(s.Sealed, "kkkk") {
				t.Errorf("stored as %s", s.Sealed)
			}
		}
		must(w.e.RewrapSigningKeys(w.ctx(), operator, masterKey(2), engine.AdminAction{}))(t)
		refused(t, w.begins(masterKey(1), nil), base.CodeMasterKeyMismatch)
		w.cfg.MasterKey = masterKey(2)
		w.restart()
		w.listening(r, w.e)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(hook.ID, 1)
		same(t, "it signs with the same secret", string(r.requests(hereURL)[0].Secrets[0].Bytes()), strings.Repeat("k", 32))
	})
}

func TestU101_a_namespace_has_so_many_webhooks(t *testing.T) {
	t.Parallel()
	onAlone(t, engine.Config{}, func(t *testing.T, w *world) {
		for range webhook.MaxEndpoints {
			w.hooked("acme", hereURL, webhook.Filter{})
		}
		_, _, err := w.e.CreateWebhook(w.ctx(), operator, "acme", webhook.Settings{URL: hereURL}, webhook.NewSecret(make([]byte, 32)), engine.AdminAction{})
		refused(t, err, base.CodeNamespaceLimitExceeded)
		w.hooked("other", hereURL, webhook.Filter{})
		mine := operator
		mine.Namespaces = []string{"acme"}
		limit := 60
		first, next, err := w.e.Webhooks.Webhooks(w.ctx(), mine, "", &limit)
		ok(t, err)
		second, end, err := w.e.Webhooks.Webhooks(w.ctx(), mine, next, &limit)
		ok(t, err)
		same(t, "pages", []int{len(first), len(second), len(end)}, []int{60, 40, 0})
	})
}

func TestE45_a_url_that_may_not_be_called_is_refused(t *testing.T) {
	t.Parallel()
	onAlone(t, engine.Config{}, func(t *testing.T, w *world) {
		for _, url := range []string{"http://here.example/", "https://127.0.0.1/", "https://[::1]/", "https://10.1.2.3/", "https://user@here.example/", "https://here.example/#a", "https://here.example:8443/"} {
			_, _, err := w.e.CreateWebhook(w.ctx(), operator, "acme", webhook.Settings{URL: url}, webhook.NewSecret(make([]byte, 32)), engine.AdminAction{})
			refused(t, err, base.CodeInvalidWebhookURL)
		}
		hook := w.hooked("acme", hereURL, webhook.Filter{})
		bad := "https://169.254.169.254/"
		_, err := w.e.ChangeWebhook(w.ctx(), operator, hook.ID, webhook.Patch{URL: &bad}, nil, engine.AdminAction{})
		refused(t, err, base.CodeInvalidWebhookURL)
		_, err = w.e.ChangeWebhook(w.ctx(), operator, hook.ID, webhook.Patch{Filter: &webhook.Filter{Kinds: []string{".bad"}}}, nil, engine.AdminAction{})
		refused(t, err, base.CodeInvalidFilter)
		same(t, "nothing has changed", w.hook(hook.ID).Revision, hook.Revision)
	})
}

func TestE39_EI13_events_wait_in_the_log_while_an_endpoint_has_too_many_pending(t *testing.T) {
	t.Parallel()
	onAlone(t, engine.Config{}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		release := make(chan struct{})
		r.answers(func(ctx context.Context, _ webhook.Request) webhook.Answer {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return webhook.Answer{Status: 200}
		})
		hook := w.hooked("acme", hereURL, submittedOnly)
		const events = webhook.MostPending + 1500
		for range events / 500 {
			w.submitMany(500, core.Submission{Namespace: "acme"})
		}
		eventually(t, "no more are taken", func() bool { return w.hook(hook.ID).Queue.Stopped != nil })
		same(t, "pending", w.pendingOf(hook.ID), webhook.MostPending)
		_, err := w.e.TestWebhook(w.ctx(), operator, hook.ID, engine.AdminAction{})
		refused(t, err, base.CodeNamespaceLimitExceeded)
		close(release)
		r.answers(taken204)
		eventually(t, "all have arrived", func() bool { return len(r.requests(hereURL)) >= events && w.pendingOf(hook.ID) == 0 })
		got := idsOf(r.requests(hereURL))
		slices.Sort(got)
		same(t, "each once", len(slices.Compact(got)), events)
		same(t, "requests", len(r.requests(hereURL)), events)
		eventually(t, "the oldest are removed", func() bool { return w.hook(hook.ID).Queue.Done <= webhook.KeptDone+600 })
	})
}

// named are the commands of commits.
type namedCommits struct{ all chan string }

func (n *namedCommits) BeforeCommit(commands []string) error {
	for _, name := range commands {
		if strings.HasSuffix(name, "_deliveries") {
			n.all <- name
		}
	}
	return nil
}

func (*namedCommits) AfterCommit([]string) error { return nil }

func TestE42_endpoints_that_take_nothing_cost_no_transaction(t *testing.T) {
	t.Parallel()
	commits := &namedCommits{all: make(chan string, 1000)}
	onAlone(t, engine.Config{Probe: commits}, func(t *testing.T, w *world) {
		r := w.listening(nil, w.e)
		for range 50 {
			w.hooked("acme", hereURL, webhook.Filter{Kinds: []string{"flow."}})
		}
		for range 10 {
			w.submitMany(100, core.Submission{Namespace: "acme"})
		}
		last := w.hooked("acme", thereURL, submittedOnly)
		w.submit(core.Submission{Namespace: "acme"})
		w.settledHook(last.ID, 1)
		same(t, "requests", len(r.requests(hereURL)), 0)
		same(t, "the one delivery is taken and recorded", []string{<-commits.all, <-commits.all}, []string{"pick_deliveries", "settle_deliveries"})
		same(t, "and nothing else", len(commits.all), 0)
	})
}
