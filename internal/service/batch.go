package service

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// batch is a call with commands under leases (U77).
type batch struct {
	*Service
	caller  Caller
	key     string // of the request; "": it has none
	items   []api.WorkItem
	answers []api.WorkAnswer
}

// doWork performs commands for many executions, each until its outcome is known, with an answer of its own. Those of one
// execution are performed in the given order, different executions concurrently.
func (s *Service) doWork(ctx context.Context, c Caller, r *wire.WorkBatch) ([]api.WorkAnswer, error) {
	b := batch{s, c, c.once(), r.Items, make([]api.WorkAnswer, len(r.Items))}
	b.caller.RequestKey = "" // it identifies each item by its index: two of one execution are not repeats of each other
	if len(b.items) == 1 {   // a worker's ending: the engine itself batches those of many callers
		b.answers[0] = b.do(ctx, 0)
		return b.answers, nil
	}
	b.doAll(ctx)
	return b.answers, nil
}

func (b *batch) doAll(ctx context.Context) {
	firsts, next := b.byExecution()
	var all sync.WaitGroup
	ends := make([]int, 0, len(firsts))
	for _, first := range firsts {
		if item := &b.items[first]; next[first] == 0 && item.Op == api.OpComplete && !item.Override {
			ends = append(ends, first)
			continue
		}
		all.Go(func() {
			b.doContained(ctx, first)
			for i := next[first]; i != 0; i = next[i] {
				b.doContained(ctx, i)
			}
		})
	}
	for _, i := range b.completeMany(ctx, ends) {
		all.Go(func() { b.doContained(ctx, i) })
	}
	all.Wait()
}

// byExecution returns the first item of each execution, and for each item the next one of the same execution; 0: none.
func (b *batch) byExecution() (firsts, next []int) {
	firsts, next = make([]int, 0, len(b.items)), make([]int, len(b.items))
	last := make(map[execution]int, len(b.items))
	for i := range b.items {
		id := executionOf(b.items[i].ID)
		if before, found := last[id]; found {
			next[before] = i
		} else {
			firsts = append(firsts, i)
		}
		last[id] = i
	}
	return firsts, next
}

// execution identifies the execution of items, independent of the form of its id.
type execution struct {
	id   base.UUID
	text api.ID // an invalid id; "": it is valid
}

func executionOf(id api.ID) execution {
	given, err := base.ParseID(string(id))
	if err != nil {
		return execution{text: id}
	}
	return execution{id: given.UUID}
}

// completeMany completes in one call of the engine the executions that ended together. It returns those that are to be sent
// again, one by one: if the outcome is unknown, or the execution still has to be looked up.
func (b *batch) completeMany(ctx context.Context, ends []int) (again []int) {
	all, sent := make([]engine.Ending, 0, len(ends)), make([]int, 0, len(ends))
	for _, i := range ends {
		ending, err := endingOf(&b.items[i])
		if err != nil {
			b.answers[i].Err = api.AsError(err)
			continue
		}
		all, sent = append(all, ending), append(sent, i)
	}
	for n, item := range b.engine.CompleteMany(ctx, b.caller.worker(), all) {
		switch base.CodeOf(item.Err) {
		case base.CodeTimeout, base.CodeExecutionNotFound:
			again = append(again, sent[n])
		default:
			b.answers[sent[n]] = answered(completed(item.CompleteAnswer), item.Err)
		}
	}
	return again
}

// endingOf converts a completion for the engine.
func endingOf(item *api.WorkItem) (engine.Ending, error) {
	id, fence, err := fenced(fencedBy(item), wire.LeaseField{})
	if err == nil {
		err = item.Result.Problem("result")
	}
	if err != nil {
		return engine.Ending{}, err
	}
	return engine.Ending{ID: id, Completion: core.Completion{Fence: fence, Result: payloadGiven(item.Result), Usage: item.Usage.Amounts}}, nil
}

// answered returns the answer to an item that was performed or refused.
func answered(a api.WorkAnswer, err error) api.WorkAnswer {
	if err != nil {
		return api.WorkAnswer{Err: api.AsError(err)}
	}
	return a
}

// doContained performs an item in a goroutine of its own and contains a panic, which would end the process.
func (b *batch) doContained(ctx context.Context, i int) {
	if err := b.engine.Contain(func() { b.answers[i] = b.do(ctx, i) }); err != nil {
		b.answers[i] = answered(api.WorkAnswer{}, err)
	}
}

// do performs an item until its outcome is known.
func (b *batch) do(ctx context.Context, i int) api.WorkAnswer {
	c, item := b.caller, &b.items[i]
	c.Key = b.keyOf(i)
	for {
		a, err := b.command(ctx, c, item)
		if !b.again(ctx, &c, err) {
			return answered(a, err)
		}
	}
}

// keyOf returns the key by which the repeat of an item is recognised, for items that neither their fence nor a name of their own
// identifies (L117).
func (b *batch) keyOf(i int) string {
	item := &b.items[i]
	switch {
	case item.Override:
		if item.RequestKey != "" {
			return item.RequestKey
		}
	case item.Op == api.OpFrames:
		if item.ClientSeq != nil || b.key == "" {
			return ""
		}
	case item.Op != api.OpSuspend && item.Op != api.OpWaitpoint && item.Op != api.OpUsage:
		return ""
	}
	if b.key != "" {
		return b.key + "/" + strconv.Itoa(i)
	}
	return b.mintKey()
}

// mintKey generates a key for the tries of one command.
func (s *Service) mintKey() string {
	var random [10]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return new(base.Minter).Mint(s.clock.Now(), random).String()
}
