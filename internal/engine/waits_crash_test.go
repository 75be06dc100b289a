package engine_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// breaks loses the store at the next commit of a command: before it is written, or when it is and this is not known.
type breaks struct {
	name    string
	written bool
	armed   atomic.Bool
}

func (b *breaks) at(commands []string, written bool) error {
	if b.written == written && slices.Contains(commands, b.name) && b.armed.CompareAndSwap(true, false) {
		return errors.New("the store is gone")
	}
	return nil
}

func (b *breaks) BeforeCommit(commands []string) error { return b.at(commands, false) }
func (b *breaks) AfterCommit(commands []string) error  { return b.at(commands, true) }

// waitCalls are the calls on waits that a lost store may leave unknown: what is sent is the same each time, and so is what comes back.
var waitCalls = map[string]func(w *world) func(c engine.Caller) (any, error){
	"suspend": func(w *world) func(engine.Caller) (any, error) {
		task := w.started(core.Submission{})
		return func(c engine.Caller) (any, error) {
			got, err := w.e.Suspend(w.ctx(), c, given(task), waitFor(task, atA))
			if err != nil {
				return nil, err
			}
			return []any{got.SuspensionID, got.Tokens[0].Reveal(), got.Satisfied}, nil
		}
	},
	"create_waitpoint": func(w *world) func(engine.Caller) (any, error) {
		task := w.started(core.Submission{})
		return func(c engine.Caller) (any, error) {
			got, err := w.e.CreateWaitpoint(w.ctx(), c, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: "a"})
			return []any{got.ID, got.Token.Reveal(), got.ExpiresAt}, err
		}
	},
	"signal": func(w *world) func(engine.Caller) (any, error) {
		_, s := w.asleep(atA)
		return func(c engine.Caller) (any, error) {
			return w.e.Signal(w.ctx(), c, nil, s.Tokens[0], core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go"})
		}
	},
	"approve": func(w *world) func(engine.Caller) (any, error) {
		id, _ := w.asleep(atA)
		return func(c engine.Caller) (any, error) {
			return w.e.Approve(w.ctx(), c, id, core.ApproveCommand{Name: "yes"}, engine.Operator{RequestKey: c.RequestKey})
		}
	},
	"resume": func(w *world) func(engine.Caller) (any, error) {
		id, _ := w.asleep(operatorOnly)
		return func(c engine.Caller) (any, error) {
			view, already, err := w.e.Resume(w.ctx(), c, id, core.ResumeCommand{}, engine.Operator{RequestKey: c.RequestKey})
			if err != nil {
				return nil, err
			}
			return []any{view.Execution.Status, already}, nil
		}
	},
	"create_link": func(w *world) func(engine.Caller) (any, error) {
		_, s := w.asleep(atA)
		return func(c engine.Caller) (any, error) {
			got, err := w.e.CreateLink(w.ctx(), c, core.CreateLinkCommand{WaitpointID: s.Waitpoints[0].ID, Approver: "ann"}, engine.Operator{RequestKey: c.RequestKey})
			return []any{got.ID, got.Token.Reveal()}, err
		}
	},
	"decide": func(w *world) func(engine.Caller) (any, error) {
		_, s := w.asleep(atA)
		l := w.link(s.Waitpoints[0].ID, "ann")
		return func(c engine.Caller) (any, error) {
			return w.e.Decide(w.ctx(), c, l.Token, core.DecideCommand{LinkID: l.ID, Decision: "approve"})
		}
	},
}

func TestW4_whatever_became_of_a_call_the_same_call_again_gets_one_answer(t *testing.T) {
	t.Parallel()
	for name, prepare := range waitCalls {
		for _, written := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onSigning(t, func(t *testing.T, w *world) {
					lost := &breaks{name: name, written: written}
					w.cfg.Probe = lost
					w.restart()
					call, c := prepare(w), engine.Caller{Principal: "op", Actor: "operator", RequestKey: "k"}
					lost.armed.Store(true)
					_, err := call(c)
					same(t, "unknown", base.CodeOf(err) == base.CodeTimeout, written)
					if err == nil || lost.armed.Load() {
						t.Fatalf("nothing was lost: %v", err)
					}
					events := len(w.events(engine.EventFilter{}))
					first := must(call(c))(t)
					told := len(w.events(engine.EventFilter{}))
					same(t, "what was written was told", told == events, written)
					same(t, "the same answer", must(call(c))(t), first)
					same(t, "and no more told", len(w.events(engine.EventFilter{})), told)
				})
			})
		}
	}
}
