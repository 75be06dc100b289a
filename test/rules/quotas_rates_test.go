package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestS40_S47_S48_a_rate_admits_so_many_in_every_window_and_the_next_one_at_exactly_the_moment_that_is_told(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		start := hand.Now()
		turn := func(ms int) { hand.TurnTo(start.Add(time.Duration(ms) * time.Millisecond)) }
		q := w.limit(t, "q", `{"rate_limit":3,"window_ms":10000}`)
		var ids []string
		for i := range 5 {
			turn(i) // so that their order is known
			ids = append(ids, w.job(t, attached(q)))
		}
		turn(1000)
		w.complete(t, w.takes(t, ids[0]), `1`) // an admission counts however the lease ends
		turn(2000)
		w.takes(t, ids[1])
		w.fail(t, w.takes(t, ids[2]))
		w.takesNothing(t)
		w.isBlocked(t, ids[3], "waiting_for_quota", "rate:"+q)
		full := w.inUse(t, q, 1, 3, 1)
		w.get(t, at(ids[3])+"/explain").shows(t, fields{"next_eligible_at": full.text(t, "keys.0.next_free_at")}) // S58
		if free := full.moment(t, "keys.0.next_free_at"); !free.Equal(start.Add(11 * time.Second)) {
			t.Errorf("room at %s", free)
		}
		short := w.submit(t, `{"kind":"short","lane":`+w.ownLane()+`,`+attached(q)+`,"policy":{"timeout_policy":{"execution_deadline_ms":5000}}}`)
		w.takesNothing(t)
		w.isBlocked(t, short, "waiting_for_quota", "rate:"+q)
		answer := w.waitsFor(t)
		turn(6999)
		w.state(t, short, fields{"status": "blocked"})
		turn(7000)
		comes(t, "S48: a deadline acts though it is blocked", func() bool { return w.get(t, at(short)).text(t, "status") == "expired" })
		turn(10_999)
		w.takesNothing(t)
		turn(11_000) // the moment t + window_ms does not count any more; S47: the sweep wakes who waits
		if got := (<-answer).wants(t, 200); got.text(t, "tasks.0.execution_id") != ids[3] {
			t.Errorf("claimed %s", got.body)
		}
		w.inUse(t, q, 2, 3, 0)
		turn(11_999)
		w.takesNothing(t)
		turn(12_000)
		w.takes(t, ids[4])
		w.inUse(t, q, 3, 2, 0)
	})
}

// waitsFor sends a claim that waits for a job of the lane, and delivers its answer.
func (w *world) waitsFor(t testing.TB) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		defer close(answer)
		answer <- w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"`+w.named("2")+`","lanes":[`+w.ownLane()+`],"wait_ms":60000}`)
	}()
	return answer
}

func TestS40_a_new_attempt_is_an_admission_going_on_is_none_and_an_unused_grant_gives_it_back(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":4}`)
		g := w.granted(t, attached(q)+`,"policy":{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		w.inUse(t, q, 1, 1, 0)
		w.present(t, "return", g.key).wants(t, 204)
		w.inUse(t, q, 0, 0, 0)
		k := w.takes(t, g.id)
		w.under(t, k, "fail", `"class":"transient","message":"no"`).wants(t, 200)
		w.takes(t, g.id)
		w.inUse(t, q, 1, 2, 0) // a retry
		w.post(t, at(g.id)+"/revoke", `{}`).wants(t, 200)
		k = w.takes(t, g.id) // a takeover
		w.complete(t, k, `1`)
		w.post(t, at(g.id)+"/replay", `{}`).wants(t, 200)
		k = w.takes(t, g.id)
		w.inUse(t, q, 1, 4, 0) // a replay
		for _, leave := range []string{`release `, `suspend "resume_condition":{"type":"operator_only"}`, `delay "delay_ms":1`} {
			w.leavesBy(t, k, leave)
			k = w.takes(t, g.id) // though the rate is used up
		}
		w.inUse(t, q, 1, 4, 0)
		w.under(t, k, "fail", `"class":"transient","message":"no"`).wants(t, 200)
		w.takesNothing(t)
		w.isBlocked(t, g.id, "waiting_for_quota", "rate:"+q)
		w.state(t, g.id, fields{"blocking_detail.limit": 4})
	})
}

// leavesBy ends a lease by a command and its fields so that the execution can go on.
func (w *world) leavesBy(t testing.TB, k task, command string) {
	t.Helper()
	name, more, _ := strings.Cut(command, " ")
	w.under(t, k, name, more).wants(t, 200)
	if name == "suspend" {
		w.post(t, at(k.id)+"/resume", `{}`).wants(t, 200)
	}
}
