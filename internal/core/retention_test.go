package core

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL139_policy_before_lane_before_default_each_by_status(t *testing.T) {
	t.Parallel()
	ms := func(n base.Millis) *base.Millis { return &n }
	days := map[Status]base.Millis{Succeeded: 3, Skipped: 3, Cancelled: 7, Failed: 14, Expired: 14}
	for status, n := range days {
		s := broughtTo(t, tablePolicy, status)
		lane := &LaneSettings{}
		at := func() (base.Time, bool) { return s.x.RemoveAt(lane, DefaultRetention()) }
		if got, ok := at(); !ok || got != s.x.CompletedAt.Add(n*base.Day) {
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

func TestL139_retention_counts_from_the_end(t *testing.T) {
	t.Parallel()
	s := begin(t, tablePolicy)
	s.pass(base.Hour)
	must[bool](t)(s.cancel(nil))
	at, ok := s.x.RemoveAt(&LaneSettings{}, DefaultRetention())
	if want := s.x.CreatedAt.Add(base.Hour + 7*base.Day); !ok || at != want {
		t.Errorf("removed at %s, want %s", at, want)
	}
}

func TestL139_L140_the_time_of_a_member_counts_from_the_end_of_its_flow_or_its_own_whichever_is_later(t *testing.T) {
	t.Parallel()
	x := broughtTo(t, tablePolicy, Succeeded).x
	for after, want := range map[base.Millis]base.Time{base.Hour: x.CompletedAt.Add(base.Hour + 3*base.Day), -base.Hour: x.CompletedAt.Add(3 * base.Day)} {
		f := &Flow{EndedAt: x.CompletedAt.Add(after)}
		if got, ok := x.FlowRemovableAt(f, &LaneSettings{}, DefaultRetention()); !ok || got != want {
			t.Errorf("a flow that ended %d ms after it: %s, want %s", after, got, want)
		}
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
			wantCode(t, s.x.CheckRemovable(s.now), base.CodeExecutionNotTerminal)
			return
		}
		if err := wantCode(t, s.x.CheckRemovable(s.now.Add(100*base.Year)), base.CodeRetained); err.Details["cause"] != "retain" {
			t.Errorf("%+v", err)
		}
		told := len(s.events)
		retain(&Retain{By: "ann", Reason: "court"})
		if len(s.events) != told {
			t.Error("the same retain was told twice")
		}
		retain(&Retain{By: "ann", Until: s.now + 10})
		wantCode(t, s.x.CheckRemovable(s.now+9), base.CodeRetained)
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

func TestL139_shorter_is_what_lets_some_status_go_earlier(t *testing.T) {
	t.Parallel()
	ms := func(n base.Millis) *base.Millis { return &n }
	for _, c := range []struct {
		old, next RetentionByStatus
		want      bool
	}{
		{RetentionByStatus{}, RetentionByStatus{}, false},
		{RetentionByStatus{}, RetentionByStatus{Succeeded: ms(3 * base.Day)}, false},
		{RetentionByStatus{}, RetentionByStatus{Succeeded: ms(3*base.Day - 1)}, true},
		{RetentionByStatus{}, RetentionByStatus{Failed: ms(-1)}, false},
		{RetentionByStatus{Failed: ms(-1)}, RetentionByStatus{}, true},
		{RetentionByStatus{Failed: ms(-1)}, RetentionByStatus{Failed: ms(-1)}, false},
		{RetentionByStatus{Failed: ms(-1)}, RetentionByStatus{Failed: ms(10 * base.Year)}, true},
		{RetentionByStatus{Skipped: ms(0)}, RetentionByStatus{}, false},
		{RetentionByStatus{Skipped: ms(0)}, RetentionByStatus{Skipped: ms(-1), Expired: ms(0)}, true},
	} {
		if got := c.next.Shortens(c.old, DefaultRetention()); got != c.want {
			t.Errorf("from %s to %s: %v", EncodeLaneSettings(LaneSettings{RetentionMS: c.old}), EncodeLaneSettings(LaneSettings{RetentionMS: c.next}), got)
		}
	}
	if (RetentionByStatus{}).Shortens(RetentionByStatus{}, RetentionByStatus{}) {
		t.Error("nothing said is for ever")
	}
}
