package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// TaskKind is a kind of follow-up work: work that is too large for the transaction that made it necessary. It is done afterwards in bounded batches,
// kept until it is done, and harmless if done twice.
type TaskKind struct {
	Name  string          // stored, and its label in metrics
	Timer store.TimerKind // each kind has a timer of its own, so that none waits for another (S61)
	Later bool            // it may be due long after it was written; any other is due at once, or some time after a failure
}

// FollowUp is a piece of follow-up work of one kind, whose arguments are an A. Its record is one JSON object: the kind, the arguments, and how often it
// has failed.
type FollowUp[A any] struct {
	Ref  store.DocRef
	Kind string
	Args A

	failures int
}

// Doc returns the record of the work, with the arguments as they are now.
func (t *FollowUp[A]) Doc() store.Doc {
	return store.Doc{DocRef: t.Ref, Body: encodeTask(t.Kind, t.Args, t.failures)}
}

// OnTask registers what does follow-up work of a kind.
func OnTask[A any](e *Engine, kind TaskKind, do func(ctx context.Context, t *FollowUp[A]) error) {
	SetIn(&e.extensions.tasks, kind.Name, taskRule{kind.Timer, func(ctx context.Context, doc *store.Doc, head taskHead) error {
		t := &FollowUp[A]{Ref: doc.DocRef, Kind: head.Kind, failures: head.Failures}
		if err := json.Unmarshal(doc.Body, &t.Args); err != nil {
			return Corrupt("task", err)
		}
		return do(ctx, t)
	}})
	e.OnTimer(kind.Timer, TimerRule{Label: "followup", Do: e.sweepTasks, Long: true, Delayed: kind.Later})
}

// taskRule does a piece of follow-up work.
type taskRule struct {
	timer store.TimerKind
	do    func(ctx context.Context, doc *store.Doc, head taskHead) error
}

// taskHead is what the kernel knows of a piece of follow-up work.
type taskHead struct {
	Kind     string `json:"kind"`
	Failures int    `json:"failures,omitempty"` // in a row
}

// encodeTask writes the kind and the failures around the fields of the arguments, which must be a struct.
func encodeTask(kind string, args any, failures int) []byte {
	body, _ := json.Marshal(kind)
	body = append([]byte(`{"kind":`), body...)
	if fields, _ := json.Marshal(args); len(fields) > len("{}") {
		body = append(append(body, ','), fields[1:len(fields)-1]...)
	}
	if failures > 0 {
		body = strconv.AppendInt(append(body, `,"failures":`...), int64(failures), 10)
	}
	return append(body, '}')
}

// AddTask adds follow-up work that starts at once. args are the arguments that its kind was registered with.
func (u *Tx) AddTask(kind TaskKind, args any) { u.AddTaskAt(kind, args, u.Now) }

// AddTaskAt adds follow-up work that starts at that time.
func (u *Tx) AddTaskAt(kind TaskKind, args any, at base.Time) {
	u.AddTaskAs(u.Engine.Mint().String(), kind, args, at)
}

// AddTaskAs adds follow-up work under an id. If it exists already it is done once, at the earlier time.
func (u *Tx) AddTaskAs(id string, kind TaskKind, args any, at base.Time) {
	u.PutDoc(store.Doc{DocRef: store.DocRef{Kind: docTask, Key: id}, Body: encodeTask(kind.Name, args, 0)})
	timer := u.TimerAt(kind.Timer, at)
	timer.Texts = append(timer.Texts, id)
}

// sweepTasks runs follow-up work until it is done. What fails stays, to be tried again, and does not delay the rest (S63).
func (e *Engine) sweepTasks(ctx context.Context, t store.Timer) error {
	var failed error
	for _, id := range t.Texts {
		err := e.sweepTask(ctx, id, t.At)
		if err != nil && ofRow(err) && ctx.Err() == nil {
			err = e.setTaskAside(ctx, id, err)
		}
		if failed = cmp.Or(failed, err); ctx.Err() != nil {
			break
		}
	}
	return cmp.Or(failed, ctx.Err())
}

// setTaskAside moves follow-up work that fails for another reason than the store to a timer of its own, later with every failure (S63).
func (e *Engine) setTaskAside(ctx context.Context, id string, why error) error {
	doc, err := e.taskDoc(ctx, id)
	if err != nil || doc == nil {
		return err
	}
	wait, failures, ch, kind := LaterBy(maxFailures), 0, &store.Changes{}, timerTasks
	if head, body, err := failedOnce(doc); err == nil {
		wait, failures = LaterBy(head.Failures-1), head.Failures
		ch.PutDocs = []store.Doc{{DocRef: doc.DocRef, Body: body}}
		kind = e.taskTimer(head.Kind)
	}
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	next := now.Add(wait)
	e.QuietLog.Error("follow-up work fails", "row", id, "failures", failures, "error", why)
	ch.AddTimers = []store.Timer{{At: next, Kind: kind, Texts: []string{id}}}
	ch.Events = []core.Event{Quarantined(id, base.CodeOf(why), failures, now, next)}
	if err := e.Write(ctx, "quarantine", ch); err != nil {
		return err
	}
	e.Gauges.Rows.Add(id, next)
	return nil
}

// sweepTask runs a piece of follow-up work that was due then, until it is done.
func (e *Engine) sweepTask(ctx context.Context, id string, due base.Time) (err error) {
	defer func() { err = e.Caught(inTask, recover(), err) }()
	doc, err := e.taskDoc(ctx, id)
	if err != nil || doc == nil {
		return err
	}
	head, err := decodeTask(doc)
	if err != nil {
		return err
	}
	if err := e.workOff(ctx, doc, head); err != nil {
		return err
	}
	if err := e.Write(ctx, "task_done", &store.Changes{DropDocs: []store.DocRef{doc.DocRef}}); err != nil {
		return err
	}
	e.Meter.Followed(head.Kind, due, e.Sweep.StoreNow())
	return nil
}

// taskDoc returns the record of a piece of follow-up work, or nil if another process has done it.
func (e *Engine) taskDoc(ctx context.Context, id string) (*store.Doc, error) {
	ref := store.DocRef{Kind: docTask, Key: id}
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return nil, err
	}
	doc, ok := loaded.Docs[ref]
	if !ok {
		return nil, nil
	}
	return &doc, nil
}

func (e *Engine) workOff(ctx context.Context, doc *store.Doc, head taskHead) error {
	if e.Cfg.Trap != nil {
		e.Cfg.Trap("task:"+head.Kind, doc.Key)
	}
	rule, known := e.extensions.tasks[head.Kind]
	if !known {
		return base.Errorf(base.CodeCorruption, "unknown follow-up work %q", head.Kind)
	}
	return rule.do(ctx, doc, head)
}

// taskTimer returns the kind of timers that a kind of follow-up work has.
func (e *Engine) taskTimer(kind string) store.TimerKind {
	if rule, known := e.extensions.tasks[kind]; known {
		return rule.timer
	}
	return timerTasks
}

// EngineCaller is the engine itself.
var EngineCaller = Caller{Principal: "engine", Actor: "engine"}

// decodeTask reads what the kernel knows of a piece of follow-up work.
func decodeTask(doc *store.Doc) (taskHead, error) {
	var head taskHead
	if err := json.Unmarshal(doc.Body, &head); err != nil {
		return head, Corrupt("task", err)
	}
	return head, nil
}

// failedOnce returns the record of a piece of follow-up work that has failed once more. All its other fields stay as they are.
func failedOnce(doc *store.Doc) (head taskHead, body []byte, err error) {
	if head, err = decodeTask(doc); err != nil {
		return head, nil, err
	}
	head.Failures++
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(doc.Body, &fields); err != nil {
		return head, nil, Corrupt("task", err)
	}
	fields["failures"] = strconv.AppendInt(nil, int64(head.Failures), 10)
	body, err = json.Marshal(fields)
	return head, body, err
}
