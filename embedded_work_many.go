package flowfabric

import (
	"context"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// maxWorkItems bounds one call of Do (U20).
const maxWorkItems = wire.MaxWorkItems

func (e embeddedWork) Do(ctx context.Context, items ...WorkItem) ([]WorkAnswer, error) {
	if len(items) > maxWorkItems {
		return nil, newError(core.CodeBatchTooLarge, "%d items, at most %d", len(items), maxWorkItems).At("items", "send them in several calls")
	}
	answers := make([]WorkAnswer, len(items))
	if len(items) == 1 { // a worker's ending: the engine gathers those of many callers by itself
		answers[0] = e.do(ctx, &items[0])
		return answers, nil
	}
	byExecution := make(map[ID][]int, len(items))
	for i := range items {
		byExecution[items[i].ID] = append(byExecution[items[i].ID], i)
	}
	var all sync.WaitGroup
	var ends []int
	for _, places := range byExecution {
		if first := &items[places[0]]; len(places) == 1 && first.Op == OpComplete && !first.Override {
			ends = append(ends, places[0])
			continue
		}
		all.Go(func() {
			for _, i := range places {
				answers[i] = e.doContained(ctx, &items[i])
			}
		})
	}
	for _, i := range e.completeMany(ctx, items, ends, answers) {
		all.Go(func() { answers[i] = e.doContained(ctx, &items[i]) })
	}
	all.Wait()
	return answers, nil
}

// doContained is do on a goroutine of its own, where a panic would end the process.
func (e embeddedWork) doContained(ctx context.Context, item *WorkItem) (answer WorkAnswer) {
	if err := e.client.engine.Contain(func() { answer = e.do(ctx, item) }); err != nil {
		return WorkAnswer{Err: publicError(err)}
	}
	return answer
}

// completeMany completes what ended together, and says which of it is to be sent once more, alone: where it is not known how it went, or
// the execution is yet to be found.
func (e embeddedWork) completeMany(ctx context.Context, items []WorkItem, ends []int, answers []WorkAnswer) (again []int) {
	all := make([]engine.Ending, 0, len(ends))
	sent := make([]int, 0, len(ends))
	for _, i := range ends {
		ending, err := items[i].ending()
		if err != nil {
			answers[i].Err = publicError(err)
			continue
		}
		all, sent = append(all, ending), append(sent, i)
	}
	for n, item := range e.client.engine.CompleteMany(ctx, e.client.asWorker(ctx), all) {
		switch core.CodeOf(item.Err) {
		case core.CodeTimeout, core.CodeExecutionNotFound:
			again = append(again, sent[n])
		default:
			answers[sent[n]] = completed(item.CompleteAnswer)
			answers[sent[n]].Err = publicError(item.Err)
		}
	}
	return again
}

// ending is a completion as the engine takes it.
func (i *WorkItem) ending() (engine.Ending, error) {
	id, err := parseID(i.ID)
	if err != nil {
		return engine.Ending{}, err
	}
	fence, err := fenceOf(i.Lease)
	if err != nil {
		return engine.Ending{}, err
	}
	result, err := i.result()
	if err != nil {
		return engine.Ending{}, err
	}
	return engine.Ending{ID: id, Completion: core.Completion{Fence: fence, Result: result, Usage: i.Usage.Amounts}}, nil
}

// result is what complete stores; nil: nothing.
func (i *WorkItem) result() (*core.Payload, error) {
	if err := i.Result.Problem("result"); err != nil || i.Result.IsNothing() {
		return nil, err
	}
	result := service.CorePayload(i.Result)
	return &result, nil
}

func completed(a core.CompleteAnswer) WorkAnswer {
	return WorkAnswer{Status: Status(a.Status.String()), Late: a.Late}
}
