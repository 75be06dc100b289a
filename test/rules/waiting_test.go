package rules

import "testing"

// seeks sends a call for work that waits, with these fields beside who it is for and for how long. It returns once the call has been to
// the store and has found nothing: that look is what makes the instance known.
func (w *world) seeks(t testing.TB, call, fields string) <-chan reply {
	t.Helper()
	instance := w.named("waiting")
	answer := make(chan reply, 1)
	go func() {
		defer close(answer)
		answer <- w.post(t, "/v1/work/"+call, `{"worker_id":"w","worker_instance_id":"`+instance+`","wait_ms":60000,`+fields+`}`)
	}()
	if call == "claim" { // one for grants leaves nothing behind
		comes(t, "the call has looked for work", func() bool { return w.get(t, "/v1/workers/"+instance).status == 200 })
	}
	select {
	case got := <-answer:
		t.Fatalf("it does not wait: %s", got.body)
	default:
	}
	return answer
}
