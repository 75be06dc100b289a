package clock_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestATimerOfAMomentFiresAlsoWhenTheClockWasTurnedBeforeItWasMade(t *testing.T) {
	t.Parallel()
	start := time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC)
	m := clock.NewManual(start)
	at := m.Now().Add(time.Second)
	m.TurnTo(start.Add(900 * time.Millisecond))
	near := m.NewTimerAt(at)
	m.TurnTo(start.Add(time.Second))
	past := m.NewTimerAt(at)
	for name, timer := range map[string]*clock.Timer{"made before its moment": near, "made after it": past} {
		if len(timer.C) != 1 {
			t.Errorf("a timer %s has not fired", name)
		}
	}
}
