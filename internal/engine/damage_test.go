package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// rot changes stored bytes behind the engine's back, as a disk does. %s is where names of tables begin.
func (w *world) rot(statement string, args ...any) {
	w.t.Helper()
	w.unaudited = true
	tx := w.beginSQL()
	prefix := ""
	if w.path != "" {
		prefix = "ff_"
	}
	changed, err := tx.ExecContext(w.t.Context(), strings.ReplaceAll(statement, "%s", prefix), args...)
	ok(w.t, err)
	same(w.t, "rows", must(changed.RowsAffected())(w.t), 1)
	ok(w.t, tx.Commit())
}

// The bytes are as long as before and good JSON: nothing but a checksum tells that they are others.
func TestW10_U113_payloads_that_have_changed_on_the_disk_are_not_served_and_integrity_names_them(t *testing.T) {
	t.Parallel()
	good, bad := []byte(`{"amount":100}`), []byte(`{"amount":900}`)
	long := append([]byte(strings.Repeat(" ", 4096)), good...)
	rows := map[string]struct {
		rot  func(w *world) base.GivenID
		read func(w *world, id base.GivenID) error
	}{
		"input": {func(w *world) base.GivenID {
			id := w.submit(core.Submission{Input: core.Payload{Data: good}})
			w.rot(`update %sexec set input = $1 where input = $2`, bad, good)
			return id
		}, func(w *world, id base.GivenID) error { _, err := w.e.Input(w.ctx(), client, id); return err }},
		"long input": {func(w *world) base.GivenID {
			id := w.submit(core.Submission{Input: core.Payload{Data: long}})
			table, column := "exec", "input"
			if w.path != "" {
				table, column = "input", "data"
			}
			w.rot(`update %s`+table+` set `+column+` = $1 where `+column+` = $2`, append(long[:4096:4096], bad...), long)
			return id
		}, func(w *world, id base.GivenID) error { _, err := w.e.Input(w.ctx(), client, id); return err }},
		"result": {func(w *world) base.GivenID {
			task := w.started(core.Submission{})
			must(w.e.Complete(w.ctx(), client, given(task), fence(task), &core.Payload{Data: good, Size: len(good)}))(w.t)
			w.rot(`update %slease set result = $1 where result = $2`, bad, good)
			return given(task)
		}, func(w *world, id base.GivenID) error { _, err := w.e.Result(w.ctx(), client, id); return err }},
		"step": {func(w *world) base.GivenID {
			task := w.started(core.Submission{})
			must(w.e.PutStep(w.ctx(), client, given(task), fence(task), "s", core.Payload{Data: good}))(w.t)
			w.rot(`update %sdoc set data = $1 where data = $2`, bad, good)
			return given(task)
		}, func(w *world, id base.GivenID) error {
			_, err := w.e.Steps(w.ctx(), client, id, engine.StepsRequest{})
			return err
		}},
		"signal": {func(w *world) base.GivenID {
			id, at := w.asleep(goAtA)
			w.signalled(at, "go", func(c *core.SignalCommand) { c.Payload = core.Payload{Data: good, Size: len(good)} })
			w.rot(`update %sdoc set data = $1 where data = $2`, bad, good)
			return id
		}, func(w *world, id base.GivenID) error {
			_, err := w.e.Signals(w.ctx(), client, id, engine.SignalQuery{})
			return err
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSigning(t, func(t *testing.T, w *world) {
				id := row.rot(w)
				same(t, "what a reader gets", base.CodeOf(row.read(w, id)), base.CodeCorruption)
				report := must(w.e.Integrity(w.ctx()))(t)
				var what []string
				for _, d := range report.Differences {
					what = append(what, d.What)
				}
				same(t, "differences", what, []string{"records"})
			})
		})
	}
}

func TestW10_work_whose_input_has_changed_on_the_disk_is_not_given_to_a_worker(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Input: core.Payload{Data: []byte("100")}})
		w.rot(`update %sexec set input = $1`, []byte("900"))
		good := w.submit(core.Submission{Input: core.Payload{Data: []byte("200")}})
		same(t, "who is claimed", given(w.claim()), good)
	})
}

// unprojectable is a store whose search rows lie on a damaged page.
type unprojectable struct{ store.Store }

func (s unprojectable) Project(context.Context, store.Projection) error {
	return &store.Fault{Kind: store.Broken, Err: base.Errorf(base.CodeCorruption, "the file is damaged")}
}

func TestU113_no_call_waits_for_search_rows_that_a_damaged_store_cannot_bring_up_to_date(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		closeEngine(t, w.e)
		w.e = w.openEngine(unprojectable{w.store})
		w.submit(core.Submission{})
		for name, call := range map[string]func() error{
			"integrity": func() error { _, err := w.e.Integrity(w.ctx()); return err },
			"a bulk job": func() error {
				_, err := w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", All: true, DryRun: true})
				return err
			},
		} {
			same(t, name, base.CodeOf(call()), base.CodeCorruption)
		}
	})
}

func TestU113_integrity_of_a_file_with_a_damaged_page_ends_and_names_it(t *testing.T) {
	t.Parallel()
	w := &world{t: t, cfg: engine.Config{NoTimers: true}, clock: clock.NewManual(start), path: filepath.Join(t.TempDir(), "engine.db")}
	s := w.openStore()
	w.e = w.openEngine(s)
	w.submit(core.Submission{}) // whose search row is not written
	closeEngine(t, w.e)
	var page int64
	ok(t, s.Close())
	db := must(sql.Open("sqlite", w.path))(t)
	ok(t, db.QueryRowContext(t.Context(), "select rootpage from sqlite_master where name = 'ff_search'").Scan(&page))
	ok(t, db.Close()) // with the last connection the log goes: the page is read from the file
	overwrite(t, w.path, page)
	w.e = w.openEngine(w.openStore())
	report := must(w.e.Integrity(w.ctx()))(t)
	if len(report.Differences) == 0 || report.Differences[0].What != "pages" {
		t.Fatalf("found %+v", report)
	}
}

// overwrite makes nonsense of a page of a SQLite file.
func overwrite(t *testing.T, path string, page int64) {
	t.Helper()
	const size = 4096
	file := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	_, err := file.WriteAt([]byte(strings.Repeat("damaged ", size/8)), (page-1)*size)
	ok(t, errors.Join(err, file.Close()))
}
