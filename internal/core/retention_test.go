package core

import "testing"

func TestL139_policy_before_lane_before_default_each_by_status(t *testing.T) {
	t.Parallel()
	ms := func(n Millis) *Millis { return &n }
	days := map[Status]Millis{Succeeded: 3, Skipped: 3, Cancelled: 7, Failed: 14, Expired: 14}
	for status, n := range days {
		s := broughtTo(t, tablePolicy, status)
		lane := &LaneSettings{}
		at := func() (Time, bool) { return s.x.RemoveAt(lane, DefaultRetention()) }
		if got, ok := at(); !ok || got != s.x.CompletedAt.Add(n*Day) {
			t.Errorf("%s: default %s %v", status, got, ok)
		}
		lane.RetentionMS = RetentionByStatus{ms(5), ms(5), ms(5), ms(5), ms(5)}
		if got, ok := at(); !ok || got != s.x.CompletedAt+5 {
			t.Errorf("%s: lane %s %v", status, got, ok)
		}
		policy := *s.x.Policy
		policy.Retention = RetentionByStatus{ms(-1), ms(-1), ms(-1), ms(-1), ms(-1)}
		s.x.Policy = &policy
		if got, ok := at(); ok || got != 0 {
			t.Errorf("%s: for ever, but %s", status, got)
		}
	}
	if at, ok := begin(t, `{"retention_ms":0}`).x.RemoveAt(&LaneSettings{}, DefaultRetention()); ok {
		t.Errorf("removed while ready at %s", at)
	}
}

func TestL140_what_is_not_terminal_or_retained_stays(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, status Status) {
		retain := func(r *Retain) {
			must[int](t)(0, s.do(func(fx *Effects) error { return s.x.SetRetain(fx, r) }))
		}
		retain(&Retain{By: "ann", Reason: "court"})
		s.last("execution.retained")
		if !status.Terminal() {
			wantCode(t, s.x.CheckRemovable(s.now), CodeExecutionNotTerminal)
			return
		}
		if err := wantCode(t, s.x.CheckRemovable(s.now.Add(100*Year)), CodeRetained); err.Details["cause"] != "retain" {
			t.Errorf("%+v", err)
		}
		told := len(s.events)
		retain(&Retain{By: "ann", Reason: "court"})
		if len(s.events) != told {
			t.Error("the same retain was told twice")
		}
		retain(&Retain{By: "ann", Until: s.now + 10})
		wantCode(t, s.x.CheckRemovable(s.now+9), CodeRetained)
		wantCode(t, s.x.CheckRemovable(s.now+10), "")
		retain(nil)
		s.last("execution.retain_ended")
		told = len(s.events)
		retain(nil)
		if len(s.events) != told {
			t.Error("told the end of nothing")
		}
		wantCode(t, s.x.CheckRemovable(s.now), "")
	})
}
