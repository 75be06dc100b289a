package txn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Limits of one bulk submit (L6).
const (
	maxBulkItems = 10_000
	maxBulkBytes = 64 << 20
	bulkChunk    = 1000
	smallBulk    = 100
)

// SubmitMany creates many executions: one result per item, in order (L87). Items are independent unless atomic is set: then the first refusal
// refuses all, with the index of the item in its details.
func (e *Engine) SubmitMany(ctx context.Context, c Caller, all []core.Submission, atomic bool) ([]SubmitItem, error) {
	if e.stopping() {
		return nil, errShuttingDown()
	}
	if err := checkBulkSize(all); err != nil {
		return nil, err
	}
	items := make([]SubmitItem, len(all))
	cmds, err := e.admitSubmits(ctx, c, all, items, atomic)
	if err != nil {
		return nil, err
	}
	if atomic {
		err = e.submitTogether(ctx, cmds, items)
	} else {
		err = e.submitChunks(ctx, cmds, items)
	}
	for i, cmd := range cmds {
		if cmd != nil {
			cmd.settled(items[i].Outcome, cmp.Or(err, items[i].Err))
		}
	}
	return items, err
}

// submitChunks runs the items in chunks: where transactions run side by side, the next one is prepared while the database writes the last.
func (e *Engine) submitChunks(ctx context.Context, cmds []*submit, items []SubmitItem) error {
	var running sync.WaitGroup
	defer running.Wait()
	lines := make(chan struct{}, e.committer.lines)
	if repeated(cmds) {
		lines = make(chan struct{}, 1)
	}
	for start := 0; start < len(cmds); start += bulkChunk {
		lines <- struct{}{}
		if err := ctx.Err(); err != nil {
			return base.Errorf(base.CodeTimeout, "gave up after %d items: %w", start, err)
		}
		running.Go(func() {
			defer func() { <-lines }()
			some := items[start:min(start+bulkChunk, len(cmds))]
			if err := e.contain(inCommand, func() { e.submitChunk(ctx, cmds[start:start+len(some)], some) }); err != nil {
				for i := range some {
					if cmds[start+i] != nil {
						some[i] = SubmitItem{Err: unknownOutcome(err)}
					}
				}
			}
		})
	}
	return nil
}

func checkBulkSize(all []core.Submission) error {
	if len(all) > maxBulkItems {
		return base.Errorf(base.CodeBatchTooLarge, "%d items, at most %d a call", len(all), maxBulkItems).With("limit", maxBulkItems)
	}
	total := 0
	for i := range all {
		total += len(all[i].Input.Data)
	}
	if total > maxBulkBytes {
		return base.Errorf(base.CodeBatchTooLarge, "%d bytes of input, at most %d a call", total, maxBulkBytes).With("limit", maxBulkBytes)
	}
	return nil
}

// admitSubmits checks every item and registers all new classes at once. An invalid item gets its error and no command, and so does one that the
// bound of waiting executions refuses. If the items are atomic, nothing is registered while one is refused.
func (e *Engine) admitSubmits(ctx context.Context, c Caller, all []core.Submission, items []SubmitItem, together bool) ([]*submit, error) {
	cmds := e.checkSubmits(ctx, c, all, items, e.newNames())
	refused, err := e.ready.admit(ctx, cmds...)
	for i, cmd := range cmds {
		if why := refused[cmd]; why != nil {
			cmds[i], items[i].Err = nil, why
		}
	}
	if err == nil {
		err = e.classify(ctx, cmds, func() bool { return together && anyRefused(cmds) })
	}
	if err != nil {
		giveBack(cmds)
	}
	return cmds, err
}

// checkSubmits checks every item. A faulty one gets its error and no command.
func (e *Engine) checkSubmits(ctx context.Context, c Caller, all []core.Submission, items []SubmitItem, names *newNames) []*submit {
	cmds := make([]*submit, len(all))
	for i := range all {
		cmds[i], items[i].Err = e.checkSubmit(ctx, c, all[i], names)
	}
	return cmds
}

// classify finds the classes of submits, and registers all new ones at once, unless they must wait until everything else was checked.
func (e *Engine) classify(ctx context.Context, cmds []*submit, wait func() bool) error {
	var missing []core.Class
	places := map[className]int{} // of a class in missing
	var of []*submit              // whose they are
	for _, cmd := range cmds {
		if cmd == nil || cmd.unresolved() || cmd.bound != nil {
			continue
		}
		class := cmd.refs.class(&cmd.s)
		name := nameOf(&class)
		if cmd.class = e.Dict.Now().named(name); cmd.class != nil {
			continue
		}
		if _, known := places[name]; !known {
			places[name] = len(missing)
			missing = append(missing, class)
		}
		of = append(of, cmd)
	}
	if len(missing) == 0 {
		return nil
	}
	if wait() {
		for _, cmd := range of {
			class := cmd.refs.class(&cmd.s)
			cmd.class, cmd.later = &class, true
		}
		return nil
	}
	classes, err := e.Dict.classesOf(ctx, missing)
	if err != nil {
		return PublicFault(err)
	}
	for _, cmd := range of {
		class := cmd.refs.class(&cmd.s)
		cmd.class = classes[places[nameOf(&class)]]
	}
	return nil
}

// anyRefused reports whether an item is refused, unless it turns out to be a duplicate.
func anyRefused(cmds []*submit) bool {
	return slices.ContainsFunc(cmds, func(cmd *submit) bool { return cmd == nil || cmd.bound != nil })
}

// repeated reports whether a key or an id is there twice: then the later item is the duplicate (L87).
func repeated(cmds []*submit) bool {
	keys, ids := map[store.Key]bool{}, map[base.UUID]bool{}
	for _, cmd := range cmds {
		if cmd == nil {
			continue
		}
		if cmd.s.IdempotencyKey != "" {
			if keys[cmd.key()] {
				return true
			}
			keys[cmd.key()] = true
		}
		if cmd.s.ID != nil {
			if ids[cmd.id.UUID] {
				return true
			}
			ids[cmd.id.UUID] = true
		}
	}
	return false
}

// submitChunk runs a part of a bulk submit. A large one runs on the caller's own goroutine and connection, so that it delays no other commands. On
// a store where transactions take turns a small one shares them with others.
func (e *Engine) submitChunk(ctx context.Context, cmds []*submit, items []SubmitItem) {
	var batch []*request
	var at []int
	for i, cmd := range cmds {
		if cmd != nil {
			batch = append(batch, e.newRequest(ctx, cmd))
			at = append(at, i)
		}
	}
	if len(batch) == 0 {
		return
	}
	if len(batch) <= smallBulk && !e.Store.Info().Shared && !repeated(cmds) {
		for n, err := range e.commitWithOthers(ctx, batch) {
			items[at[n]] = SubmitItem{Err: err}
			if err == nil {
				items[at[n]].SubmitAnswer = cmds[at[n]].answer
			}
		}
		return
	}
	e.process(batch)
	for n, r := range batch {
		<-r.done
		items[at[n]] = SubmitItem{SubmitAnswer: cmds[at[n]].answer, Err: r.err}
	}
}

// submitTogether runs all items in one transaction or none of them.
func (e *Engine) submitTogether(ctx context.Context, cmds []*submit, items []SubmitItem) error {
	for i := range items {
		if items[i].Err != nil {
			return withIndex(items[i].Err, i)
		}
	}
	all := &submitAll{cmds: cmds}
	r := e.newRequest(ctx, all)
	e.process([]*request{r})
	<-r.done
	if r.err != nil {
		return r.err
	}
	for i, cmd := range cmds {
		items[i].SubmitAnswer = cmd.answer
	}
	return nil
}

func withIndex(err error, index int) error {
	var refusal *base.Error
	if errors.As(err, &refusal) {
		copied := *refusal
		copied.Details = nil
		for name, value := range refusal.Details {
			copied.With(name, value)
		}
		return copied.With("index", index)
	}
	return err
}
