package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// submitsIn submits in a transaction of the user's own, and commits it.
func (w *world) submitsIn(s core.Submission) base.GivenID {
	w.t.Helper()
	own := w.beginOwn()
	answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, s))(w.t)
	ok(w.t, own.commit())
	return answer.ID.Given()
}

// tries returns how often it was told that the row of an id was set aside.
func (w *world) tries(id base.GivenID) (n int) {
	for _, row := range w.asides() {
		if row == id.UUID.String() {
			n++
		}
	}
	return n
}

func TestS63_L88_a_submission_of_a_transaction_that_makes_the_engine_panic_holds_up_no_other(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		b := w.beginOwn()
		bad := must(w.e.SubmitTx(w.ctx(), client, b.tx, core.Submission{Kind: "bad"}))(t).ID.Given()
		traps.at("ingest", bad.UUID.String())
		ok(t, b.commit())
		w.setAside(bad.UUID.String())
		good := w.submitsIn(core.Submission{Kind: "good"})
		waiting := w.waiting(w.e, ask())
		same(t, "the other is claimed", given(w.only(waiting)), good)
		if n := w.tries(bad); n > 5 {
			t.Errorf("set aside %d times: its pauses do not grow", n)
		}
		traps.clear()
		eventually(t, "it is tried again", func() bool {
			_, err := w.e.Describe(w.ctx(), client, bad)
			return err == nil
		})
	})
}

func TestS63_L88_an_outcome_of_a_transaction_that_makes_the_engine_panic_holds_up_no_other(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		bad, good := w.started(core.Submission{}), w.started(core.Submission{})
		traps.at("outcome", given(bad).UUID.String())
		w.leavesIn(bad, "1")
		w.setAside(given(bad).UUID.String())
		w.leavesIn(good, "2")
		w.endedOnce(given(good), "2")
		_, err := w.e.Cancel(w.ctx(), operator, given(bad), nil, "", engine.Operator{})
		refused(t, err, base.CodeInternal) // nothing is decided before what was committed
		traps.clear()
		w.endedOnce(given(bad), "1")
	})
}

// More rows than one look reads are left alone: those behind them are read all the same.
func TestS63_L88_however_many_rows_of_the_inbox_are_left_alone_those_behind_them_are_ingested(t *testing.T) {
	t.Parallel()
	onTraps(t, func(t *testing.T, w *world, traps *traps) {
		id := func(n int) *base.GivenID {
			return &base.GivenID{UUID: base.UUID{6: 0x70, 8: 0x80, 10: 0xba, 11: 0xdb, 12: 0xad, 14: byte(n >> 8), 15: byte(n)}}
		}
		const many = 600
		traps.at("ingest", "badbad")
		own := w.beginOwn()
		for n := range many {
			must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "bad", ID: id(n)}))(t)
		}
		ok(t, own.commit())
		good := w.submitsIn(core.Submission{Kind: "good"})
		waiting := w.waiting(w.e, ask())
		same(t, "the one behind them is claimed", given(w.only(waiting)), good)
	})
}
