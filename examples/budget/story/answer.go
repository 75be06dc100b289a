package story

import (
	"context"
	"fmt"
	"sync"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/llm"
)

// Prompt is a question to a model.
type Prompt struct {
	Question  string
	MaxTokens int64 // 0: as many as it takes
}

// Answer is the work.
const Answer flowfabric.Kind[Prompt, string] = "answer"

// microsAToken is the price: so many millionths of the currency.
const microsAToken = 20

// desk is who answers, and what is heard of it.
type desk struct {
	model Model
	open  chan struct{} // closed when the model may be asked
	mu    sync.Mutex
	heard []string
}

// answer asks the model once and reports what that took. It runs twice when the report passes the hard limit: the first call parks the
// work in ReportUsage, the second one passes the step and the report that are done.
func (d *desk) answer(ctx context.Context, t *flowfabric.Task, p Prompt) (string, error) {
	select {
	case <-d.open:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	reply, err := flowfabric.Step(ctx, t, "model", func(ctx context.Context) (llm.Reply, error) { return d.model(ctx, p) })
	if err != nil {
		return "", err
	}
	receipt, err := t.ReportUsage(ctx, flowfabric.Usage{
		Amounts:  map[string]int64{tokens: reply.Tokens, flowfabric.CostMicros: reply.Tokens * microsAToken},
		DedupKey: "model", AlreadySpent: true,
	})
	d.hear(p, reply, receipt)
	return reply.Text, err // parked here when the limit is passed, until somebody decides
}

// hear notes what came of a report.
func (d *desk) hear(p Prompt, reply llm.Reply, r api.UsageReceipt) {
	said := fmt.Sprintf("%q took %d tokens: %s", p.Question, reply.Tokens, r.Outcome)
	switch {
	case r.Repeated():
		said = fmt.Sprintf("%q goes on; its %d tokens are booked already, and the model is not asked again", p.Question, reply.Tokens)
	case r.Outcome == api.UsageSoftBreach:
		said += fmt.Sprintf(", %d are used and %d was the soft limit", r.Used, r.Soft)
	case r.Outcome == api.UsageHardBreach:
		said += fmt.Sprintf(", %d of them beyond the limit of %d; the work is %s", r.Overrun, r.Hard, r.Action)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, said)
}

// news is what was heard since the last time.
func (d *desk) news() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	heard := d.heard
	d.heard = nil
	return heard
}
