package schedule

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

// corpus are definitions as people write them, and some that are hard to search.
func corpus(t tester) map[string]*Spec {
	specs := map[string]*Spec{}
	for _, line := range []string{"* * * * *", "*/5 * * * *", "0 2 * * *", "30 2 * * 1-5", "0 0 1 * *", "0 9 LW * *", "0 0 * * 5#2", "0 0 29 2 *", "0 0 13 * 5", "* * * * * *", "0 0 31 12 *", "@every 90s"} {
		specs[line] = inZone(t, "Europe/Berlin", line)
	}
	d := valid()
	d.Calendars = []cron.Calendar{{DayOfMonth: "29", Month: "2", DayOfWeek: "mon"}}
	d.Timezone = "America/Nuuk"
	specs["February 29 on a Monday"] = must[*Spec](t)(Parse(d))
	d = valid("0 0 * * *")
	d.Except = []cron.Calendar{{DayOfWeek: "1-6"}, {Month: "1-11"}}
	specs["all but Sundays of December removed"] = must[*Spec](t)(Parse(d))
	return specs
}

func BenchmarkT68_Next(b *testing.B) {
	for name, spec := range corpus(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			from := at(b, "2026-01-01")
			for b.Loop() {
				next, ok := spec.Next(from)
				if !ok {
					next = at(b, "2026-01-01")
				}
				from = next
			}
		})
	}
}

func BenchmarkT68_settle_one_moment(b *testing.B) {
	w := hourly(b, OverlapAllow)
	stored := w.rec.Encode()
	submit := func(*Start) Verdict { return Verdict{Target: base.IDOf(base.UUID{1})} }
	b.ReportAllocs()
	for b.Loop() {
		r, err := Decode(stored)
		if err != nil {
			b.Fatal(err)
		}
		spec, err := Parse(r.Definition)
		if err != nil {
			b.Fatal(err)
		}
		p := Settle(&r, spec, &Facts{Now: r.NextDueAt, Submit: submit})
		p.After.Encode()
	}
}
