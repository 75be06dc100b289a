package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Limits of one bulk submit (L6).
const (
	maxBulkItems = 10_000
	MaxBulkBytes = 64 << 20
	bulkChunk    = 1000
	smallBulk    = 100
)

// SubmitMany creates many executions: one result per item, in order (L87). Items are independent unless atomic is set: then the first refusal
// refuses all, with the index of the item in its details.
func (e *Work) SubmitMany(ctx context.Context, c txn.Caller, all []core.Submission, atomic bool) ([]txn.SubmitItem, error) {
	if e.Stopping() {
		return nil, txn.ErrShuttingDown()
	}
	if err := checkBulkSize(all); err != nil {
		return nil, err
	}
	items := make([]txn.SubmitItem, len(all))
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
func (e *Work) submitChunks(ctx context.Context, cmds []*Submit, items []txn.SubmitItem) error {
	var running sync.WaitGroup
	defer running.Wait()
	lines := make(chan struct{}, e.Committer.Lines)
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
			if err := e.Guard(txn.InCommand, func() { e.submitChunk(ctx, cmds[start:start+len(some)], some) }); err != nil {
				for i := range some {
					if cmds[start+i] != nil {
						some[i] = txn.SubmitItem{Err: txn.UnknownOutcome(err)}
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
	if total > MaxBulkBytes {
		return base.Errorf(base.CodeBatchTooLarge, "%d bytes of input, at most %d a call", total, MaxBulkBytes).With("limit", MaxBulkBytes)
	}
	return nil
}

// admitSubmits checks every item and registers all new classes at once. An invalid item gets its error and no command, and so does one that the
// bound of waiting executions refuses. If the items are atomic, nothing is registered while one is refused.
func (e *Work) admitSubmits(ctx context.Context, c txn.Caller, all []core.Submission, items []txn.SubmitItem, together bool) ([]*Submit, error) {
	cmds := e.CheckSubmits(ctx, c, all, items, e.NewNames())
	refused, err := e.Ready.admit(ctx, cmds...)
	for i, cmd := range cmds {
		if why := refused[cmd]; why != nil {
			cmds[i], items[i].Err = nil, why
		}
	}
	if err == nil {
		err = e.Classify(ctx, cmds, func() bool { return together && anyRefused(cmds) })
	}
	if err != nil {
		giveBack(cmds)
	}
	return cmds, err
}

// CheckSubmits checks every item. A faulty one gets its error and no command.
func (e *Work) CheckSubmits(ctx context.Context, c txn.Caller, all []core.Submission, items []txn.SubmitItem, names *txn.NewNames) []*Submit {
	cmds := make([]*Submit, len(all))
	for i := range all {
		cmds[i], items[i].Err = e.CheckSubmit(ctx, c, all[i], names)
	}
	return cmds
}

// Classify finds the classes of submits, and registers all new ones at once, unless they must wait until everything else was checked.
func (e *Work) Classify(ctx context.Context, cmds []*Submit, wait func() bool) error {
	var missing []core.Class
	places := map[txn.ClassName]int{} // of a class in missing
	var of []*Submit                  // whose they are
	for _, cmd := range cmds {
		if cmd == nil || cmd.Unresolved() || cmd.Bound != nil {
			continue
		}
		class := cmd.Refs.Class(&cmd.S)
		name := txn.NameOf(&class)
		if cmd.Class = e.Dict.Now().Named(name); cmd.Class != nil {
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
			class := cmd.Refs.Class(&cmd.S)
			cmd.Class, cmd.Later = &class, true
		}
		return nil
	}
	classes, err := e.Dict.ClassesOf(ctx, missing)
	if err != nil {
		return txn.PublicFault(err)
	}
	for _, cmd := range of {
		class := cmd.Refs.Class(&cmd.S)
		cmd.Class = classes[places[txn.NameOf(&class)]]
	}
	return nil
}

// anyRefused reports whether an item is refused, unless it turns out to be a duplicate.
func anyRefused(cmds []*Submit) bool {
	return slices.ContainsFunc(cmds, func(cmd *Submit) bool { return cmd == nil || cmd.Bound != nil })
}

// repeated reports whether a key or an id is there twice: then the later item is the duplicate (L87).
func repeated(cmds []*Submit) bool {
	keys, ids := map[store.Key]bool{}, map[base.UUID]bool{}
	for _, cmd := range cmds {
		if cmd == nil {
			continue
		}
		if cmd.S.IdempotencyKey != "" {
			if keys[cmd.key()] {
				return true
			}
			keys[cmd.key()] = true
		}
		if cmd.S.ID != nil {
			if ids[cmd.ID.UUID] {
				return true
			}
			ids[cmd.ID.UUID] = true
		}
	}
	return false
}

// submitChunk runs a part of a bulk submit. A large one runs on the caller's own goroutine and connection, so that it delays no other commands. On
// a store where transactions take turns a small one shares them with others.
func (e *Work) submitChunk(ctx context.Context, cmds []*Submit, items []txn.SubmitItem) {
	var batch []*txn.Request
	var at []int
	for i, cmd := range cmds {
		if cmd != nil {
			batch = append(batch, e.NewRequest(ctx, cmd))
			at = append(at, i)
		}
	}
	if len(batch) == 0 {
		return
	}
	if len(batch) <= smallBulk && !e.Store.Info().Shared && !repeated(cmds) {
		for n, err := range e.CommitWithOthers(ctx, batch) {
			items[at[n]] = txn.SubmitItem{Err: err}
			if err == nil {
				items[at[n]].SubmitAnswer = cmds[at[n]].answer
			}
		}
		return
	}
	e.Process(batch)
	for n, r := range batch {
		<-r.Done
		items[at[n]] = txn.SubmitItem{SubmitAnswer: cmds[at[n]].answer, Err: r.Err}
	}
}

// submitTogether runs all items in one transaction or none of them.
func (e *Work) submitTogether(ctx context.Context, cmds []*Submit, items []txn.SubmitItem) error {
	for i := range items {
		if items[i].Err != nil {
			return withIndex(items[i].Err, i)
		}
	}
	all := &submitAll{cmds: cmds}
	r := e.NewRequest(ctx, all)
	e.Process([]*txn.Request{r})
	<-r.Done
	if r.Err != nil {
		return r.Err
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
