package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func someTrace() *base.Trace {
	return base.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=1", "user=7")
}

func TestU215_a_trace_context_stays_with_its_work(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		s.Trace = someTrace()
		id := w.submit(s)
		first := w.claim()
		same(t, "task", *first.Execution.Trace, *someTrace())
		fence := core.Fence{LeaseID: first.Execution.Lease.ID, Epoch: first.Execution.LeaseEpoch, AttemptID: first.Execution.Lease.AttemptID}
		must(w.e.Fail(w.ctx(), client, id, core.FailCommand{Fence: fence}))(t)
		again := w.claim()
		same(t, "task of the retry", *again.Execution.Trace, *someTrace())
		w.complete(again)
		same(t, "record", *w.get(id).Trace, *someTrace())

		plain := w.submit(core.Submission{})
		if got := w.get(plain).Trace; got != nil {
			t.Errorf("work without a trace context has %+v", got)
		}
		w.cancel(plain)
	})
}

func TestU215_a_submission_in_the_users_transaction_keeps_its_trace_context(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := w.beginOwn()
		answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", Trace: someTrace()}))(t)
		same(t, "what the commit will make", *answer.View.Execution.Trace, *someTrace())
		ok(t, own.commit())
		same(t, "record", *w.get(answer.ID.Given()).Trace, *someTrace())
	})
}

// spanLog is a tracer that records its calls.
type spanLog struct {
	mu   sync.Mutex
	all  []*loggedSpan
	none bool // it makes no spans of commands
}

type loggedSpan struct {
	log      *spanLog
	name     string
	commands []engine.Span
	size     int
	facts    engine.Facts
	err      error
	ended    int
}

func (l *spanLog) add(s *loggedSpan) engine.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.log = l
	l.all = append(l.all, s)
	return s
}

// Command writes down a command.
func (l *spanLog) Command(_ context.Context, name string) engine.Span {
	if l.none {
		return nil
	}
	return l.add(&loggedSpan{name: name})
}

// Commit writes down a transaction.
func (l *spanLog) Commit(commands []engine.Span, size int) engine.Span {
	return l.add(&loggedSpan{name: "commit", commands: slices.Clone(commands), size: size})
}

// Attach writes down what the span is about.
func (s *loggedSpan) Attach(f engine.Facts) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.facts = f
}

// End writes down how it ended.
func (s *loggedSpan) End(err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.err = err
	s.ended++
}

// named lists the spans of a name as they are now.
func (l *spanLog) named(name string) []loggedSpan {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []loggedSpan
	for _, s := range l.all {
		if s.name == name {
			found = append(found, loggedSpan{name: s.name, commands: s.commands, size: s.size, facts: s.facts, err: s.err, ended: s.ended})
		}
	}
	return found
}

func TestU216_every_command_of_a_caller_has_one_span_and_its_commit_names_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		log := w.traced(&spanLog{})
		id := w.submit(core.Submission{})
		w.complete(w.claim())
		_, err := w.e.Replay(w.ctx(), client, id, engine.ReplayRequest{DeadlineAt: 1}, engine.Operator{})
		submit, claim, complete, replay := log.named("submit"), log.named("claim"), log.named("complete"), log.named("replay")
		same(t, "spans", [4]int{len(submit), len(claim), len(complete), len(replay)}, [4]int{1, 1, 1, 1})
		same(t, "refusal", base.CodeOf(replay[0].err), base.CodeOf(err))
		for _, s := range []loggedSpan{submit[0], claim[0], complete[0], replay[0]} {
			same(t, s.name+" ended", s.ended, 1)
			same(t, s.name+" is about", s.facts.ID.Given(), id)
		}
		same(t, "status and attempt", [2]any{complete[0].facts.Status, complete[0].facts.Attempt}, [2]any{core.Succeeded, 0})
		same(t, "attempt of a submit", submit[0].facts.Attempt, -1)
		commits := log.named("commit")
		same(t, "commits", len(commits), 3)
		for _, c := range commits {
			same(t, "a commit ended, and its size", [2]int{c.ended, c.size}, [2]int{1, len(c.commands)})
		}
	})
}

func TestU216_a_tracer_may_leave_commands_out(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		log := w.traced(&spanLog{none: true})
		w.submit(core.Submission{})
		w.complete(w.claim())
		same(t, "commits", len(log.named("commit")), 0)
	})
}

// traced opens the engine of the world anew, with a tracer.
func (w *world) traced(log *spanLog) *spanLog {
	w.t.Helper()
	w.cfg.Tracer = log
	closeEngine(w.t, w.e)
	w.e = w.openEngine(w.store)
	return log
}

func TestU216_what_the_engine_does_by_itself_has_no_span(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		log := w.traced(&spanLog{})
		s := policy(`{}`)
		short := base.Millis(30)
		s.DelayMS = &short
		w.submit(s)
		w.turn(1000)
		w.complete(w.claim()) // a sweep has filed it
		if got := log.named("wake"); len(got) != 0 {
			t.Errorf("%d spans of timers", len(got))
		}
	})
}
