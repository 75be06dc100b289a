package rules

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// The kinds of documents that hold what was admitted and budgets, as they are stored.
const (
	keptBudgets = 21
	keptRates   = 27
)

// spoil makes all documents of a kind unreadable, behind the server's back. What it returns mends them.
func spoil(t *testing.T, address string, kind int) (mend func()) {
	t.Helper()
	path, lite := strings.CutPrefix(address, "sqlite:")
	run := func(text string) {
		t.Helper()
		if lite {
			db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, " doc ", " ff_doc "), kind); err != nil {
				t.Fatal(err)
			}
			return
		}
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), text, kind); err != nil {
			t.Fatal(err)
		}
	}
	run(`update doc set body = substr(body, 2), data = substr(data, 2) where kind = $1`)
	return func() { t.Helper(); run(`delete from doc where kind = $1`) }
}

func TestS45_a_record_that_cannot_be_read_admits_nothing_and_stops_no_other_work(t *testing.T) {
	t.Parallel()
	for name, site := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			address := site.address(t)
			w := &world{serve(t, address, engine.Hooks{Clock: hand}), "default", ""}
			q := w.limit(t, "q", `{"rate_limit":9}`)
			w.complete(t, w.started(t, attached(q)), `1`)
			mend := spoil(t, address, keptRates)
			id, other := w.job(t, `"priority":9,`+attached(q)), w.job(t, "")
			w.complete(t, w.takes(t, other), `1`) // the call does not fail, and goes on
			w.isBlocked(t, id, "waiting_for_quota", "rate:"+q)
			w.state(t, id, fields{"blocking_detail": "unreadable"})
			w.keptBy(t, id, "rate").shows(t, fields{
				"blockers.0.data.key": "rate:" + q, "blockers.0.data.unreadable": true, "blockers.0.data.retry_at": "2030-01-01T00:01:00.000Z",
			})
			w.asksFor(t, id, "").refuses(t, 429, "admission_refused").shows(t, fields{"current.key": "rate:" + q, "current.blocking_detail": "unreadable"})
			hand.TurnTo(hand.Now().Add(59_999 * time.Millisecond))
			w.state(t, id, fields{"status": "blocked"})
			hand.TurnTo(hand.Now().Add(time.Millisecond)) // it is tried again, and again
			comes(t, "its time has come", func() bool { return w.get(t, at(id)).text(t, "status") == "ready" })
			w.takesNothing(t)
			w.keptBy(t, id, "rate").shows(t, fields{"blockers.0.data.retry_at": "2030-01-01T00:02:00.000Z"})
			mend()
			hand.TurnTo(hand.Now().Add(time.Minute))
			w.complete(t, w.takes(t, id), `1`)

			costs := `"policy":{` + w.purse(t, "team", 10, 4) + `}`
			budget := w.get(t, "/v1/budgets/team").text(t, "budget_id")
			spoil(t, address, keptBudgets)
			poor, rich := w.job(t, `"priority":9,`+costs), w.job(t, "")
			w.takes(t, rich)
			w.isBlocked(t, poor, "waiting_for_budget", "budget:"+budget)
			w.state(t, poor, fields{"blocking_detail": "unreadable"})
		})
	}
}
