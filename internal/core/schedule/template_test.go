package schedule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/zone"
)

func testValues(t tester) *Values {
	id, _ := base.ParseUUID("0190f0c2-1111-7aaa-8bbb-0123456789ab")
	return &Values{
		Name: "nightly", ID: id, ScheduledAt: at(t, "2026-03-28 23:30"), PreviousAt: at(t, "2026-03-27 23:30"), Run: 7, Cause: CauseTimer,
		Zone: must[*zone.Zone](t)(zone.Find("Europe/Berlin")),
	}
}

func TestT39_each_placeholder(t *testing.T) {
	t.Parallel()
	v := testValues(t)
	for input, want := range map[string]string{
		`"${schedule.name}"`:                                  `"nightly"`,
		`"${schedule.id}"`:                                    `"0190f0c2-1111-7aaa-8bbb-0123456789ab"`,
		`"${schedule.scheduled_at}"`:                          `"2026-03-28T23:30:00.000Z"`,
		`"${schedule.scheduled_local}"`:                       `"2026-03-29T00:30:00+01:00"`,
		`"${schedule.scheduled_date}"`:                        `"2026-03-29"`,
		`"${schedule.scheduled_ms}"`:                          `1774740600000`,
		`"${schedule.previous_at}"`:                           `"2026-03-27T23:30:00.000Z"`,
		`"${schedule.previous_ms}"`:                           `1774654200000`,
		`"${schedule.run}"`:                                   `7`,
		`"${schedule.cause}"`:                                 `"timer"`,
		`" ${schedule.run}"`:                                  `" 7"`,
		`"${schedule.run}${schedule.run}"`:                    `"77"`,
		`"$${schedule.run} $${ $$ ${x} $"`:                    `"${schedule.run} ${ $$ ${x} $"`,
		`"\u0024{schedule.name}\n\"é"`:                        `"nightly\n\"é"`,
		`{"${schedule.name}" : "a", "b":["${schedule.run}"]}`: `{"${schedule.name}" : "a", "b":[7]}`,
		"{ \"a\" :1.50 ,\t\"b\\u0041\": \"\\u0041\" }":        "{ \"a\" :1.50 ,\t\"b\\u0041\": \"\\u0041\" }",
		`1e400`: `1e400`, ``: ``, `null`: `null`,
	} {
		got, err := v.Expand([]byte(input))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s: %v", input, got, want, err)
		}
	}
	v.PreviousAt = 0
	got := must[[]byte](t)(v.Expand([]byte(`["${schedule.previous_ms}","${schedule.previous_at}","<${schedule.previous_ms}>"]`)))
	want(t, "without a moment before", string(got), `[null,"","<>"]`)
	want(t, "a tag", must[string](t)(v.ExpandText("r${schedule.run}")), "r7")
}

func TestT39_what_is_not_a_template_is_refused(t *testing.T) {
	t.Parallel()
	v := testValues(t)
	for _, input := range []string{`"${schedule.other}"`, `"${schedule.run"`, `"${schedule."`, `"${schedule.}"`, `"${schedule.Run}"`, `{"a":["${schedule.x}"]}`} {
		_, err := v.Expand([]byte(input))
		wantCode(t, err, base.CodeInvalidSchedule, "")
	}
	for _, input := range []string{`{`, `a`, `"${schedule.run}`, " "} {
		_, err := v.Expand([]byte(input))
		wantCode(t, err, base.CodeInvalidSchedule, "")
	}
	_, err := v.ExpandText("ab${schedule.x}")
	want(t, "place", wantCode(t, err, base.CodeInvalidSchedule, "").Details["position"], any(2))
}

func FuzzExpand(f *testing.F) {
	for _, input := range []string{`{"a":"${schedule.run}"}`, `"$${schedule.run}"`, `["\u0024{schedule.name}"]`, `{"a":{"b":"c"}}`} {
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input string) {
		got, err := testValues(t).Expand([]byte(input))
		if err != nil {
			wantCode(t, err, base.CodeInvalidSchedule, "")
			return
		}
		if len(input) > 0 && !json.Valid(got) {
			t.Fatalf("%s becomes %s", input, got)
		}
		if !strings.Contains(input, "$") && !strings.Contains(input, `\`) && string(got) != input {
			t.Fatalf("%s becomes %s", input, got)
		}
	})
}
