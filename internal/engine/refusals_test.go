package engine_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestU131_refusals_of_a_principal_for_an_action_are_two_rows_a_minute_however_many_they_are(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		host := clock.NewManual(start)
		run := map[string]func(*testing.T, engine.Config, func(*testing.T, *world)){"sqlite": onAlone, "postgres": onShared}[name]
		run(t, engine.Config{Clock: host}, func(t *testing.T, w *world) {
			c := byKey("k1", "ci", "a")
			hold := func(c engine.Caller, id string) {
				t.Helper()
				ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Action: "hold", Entity: "execution", EntityID: id, Code: base.CodeRoleRequired}))
			}
			long := strings.Repeat("ä", 4000)
			for range 3000 {
				hold(c, long)
			}
			hold(byKey("k2", "ci", "a"), "x") // another key is another principal
			ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Action: "put_lane", Entity: "lane", EntityID: "l", Code: base.CodeRoleRequired}))
			rows := w.told(admin, core.AuditFilter{})
			same(t, "rows at once", actions(rows), []string{"a put_lane lane", "a hold execution", "a hold execution"})
			if id := rows[2].EntityID; len(id) > 128 || !utf8.ValidString(id) || !strings.HasPrefix(long, id) {
				t.Errorf("the id is %d bytes long: %q", len(id), id)
			}
			host.TurnTo(host.Now().Add(time.Minute))
			eventually(t, "the count is shown", func() bool { return len(w.told(admin, core.AuditFilter{})) == 4 })
			counted := w.told(admin, core.AuditFilter{})[0]
			same(t, "counted", []any{counted.Action, counted.Principal, counted.EntityID, counted.Outcome, string(counted.After)},
				[]any{"hold", "ci", "", "role_required", `{"refusals":2999}`})
			hold(c, "y")
			same(t, "the next minute", len(w.told(admin, core.AuditFilter{})), 5)
			hold(c, "z")
			w.restart()
			same(t, "what was counted when the process ends", string(w.told(admin, core.AuditFilter{})[0].After), `{"refusals":1}`)
			w.verified("a", 6)
		})
	}
}
