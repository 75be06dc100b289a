package core

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestW82_one_suspension_is_shown_whatever_the_others_are(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleNamed, bound(fresh("a")...)))
	must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "go"))
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly))
	s.d.Suspensions[1].Condition = []byte("{")
	shown := must[*Observation](t)(s.x.ObserveOne(&s.d, first.SuspensionID))
	if shown.ID != first.SuspensionID || shown.Cause != CauseSignal || len(shown.Signals) != 1 {
		t.Errorf("%+v", shown)
	}
	if none := must[*Observation](t)(s.x.ObserveOne(&s.d, base.UUID{9})); none != nil {
		t.Errorf("one that there is not: %+v", none)
	}
}
