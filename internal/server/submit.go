package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveSubmits() {
	handle(s, wire.SubmitExecution, s.submit)
	handle(s, wire.SubmitExecutions, s.submitMany)
}

// submit hands in one piece of work (U32).
func (s *Server) submit(ctx context.Context, r *wire.SubmitRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	given, err := r.Submission()
	if err != nil {
		return answer{}, err
	}
	submission, err := flowfabric.SubmissionOf(&given)
	if err != nil {
		return answer{}, err
	}
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, 1); err != nil {
		return answer{}, err
	}
	result, execution, err := s.submitAndShow(ctx, submission)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated}
	outcome := "created"
	if result.Duplicate {
		a.status, outcome = http.StatusOK, "duplicate"
	}
	if execution == nil || wait.atMost > 0 {
		execution, err = s.executionNow(ctx, result.ID, wait.atMost)
	}
	switch {
	case errors.Is(err, flowfabric.ErrNotFound): // of an old key nothing is left but the id
		a.body = flat{wire.SubmitItem{Outcome: outcome, ExecutionID: string(result.ID), PublicState: result.PublicState, Priority: result.Priority}, nil}
	case err != nil:
		return answer{}, err
	default:
		a.body = flat{outcomeOnly{outcome}, shown(execution, "", r.Encoding)}
	}
	return wait.told(a.with("Location", "/v1/executions/"+string(result.ID))), nil
}

// shower is a Client that shows what it has just created without reading it back; nil when it was there before.
type shower interface {
	SubmitAndShow(ctx context.Context, s flowfabric.Submission) (flowfabric.SubmitResult, *flowfabric.Execution, error)
}

// submitAndShow submits and shows what was created, if the client can.
func (s *Server) submitAndShow(ctx context.Context, submission flowfabric.Submission) (flowfabric.SubmitResult, *flowfabric.Execution, error) {
	if client, ok := s.client.(shower); ok {
		return client.SubmitAndShow(ctx, submission)
	}
	result, err := s.client.Submit(ctx, submission)
	return result, nil, err
}

// outcomeOnly stands before the fields of what it is the outcome for.
type outcomeOnly struct {
	Outcome string `json:"outcome"`
}

// flat is two JSON objects in one.
type flat struct{ head, rest any }

// MarshalJSON writes the fields of both.
func (f flat) MarshalJSON() ([]byte, error) {
	text, err := wire.Marshal(f.head)
	if err != nil || f.rest == nil {
		return text, err
	}
	rest, err := wire.Marshal(f.rest)
	switch {
	case err != nil || bytes.Equal(rest, []byte("{}")):
		return text, err
	case bytes.Equal(text, []byte("{}")):
		return rest, nil
	}
	return append(append(text[:len(text)-1], ','), rest[1:]...), nil
}

// submitMany hands in a batch: a JSON document, or lines that are committed as they come in (U33).
func (s *Server) submitMany(ctx context.Context, r *wire.SubmitManyRequest) (answer, error) {
	x := exchangeOf(ctx)
	if isLines(x.r) {
		return answer{stream: s.submitLines}, nil
	}
	all := make([]flowfabric.Submission, len(r.Body.Items))
	refusals := make([]error, len(all))
	for i := range r.Body.Items {
		all[i], refusals[i] = flowfabric.SubmissionOf(&r.Body.Items[i])
		if refusals[i] != nil && r.Body.Atomic {
			return answer{}, atIndex(refusals[i], i)
		}
	}
	answers, err := s.submitAll(ctx, all, refusals, flowfabric.SubmitManyOptions{Atomic: r.Body.Atomic})
	return shows(answers), err
}

// atIndex names the item whose refusal is the answer to all (U22).
func atIndex(err error, index int) error {
	var refused *flowfabric.Error
	if !errors.As(err, &refused) {
		return err
	}
	named := *refused
	named.Current = map[string]any{"index": index}
	return &named
}

// submitAll submits what was not refused already, and answers for every item.
func (s *Server) submitAll(
	ctx context.Context, all []flowfabric.Submission, refusals []error, o flowfabric.SubmitManyOptions,
) (*wire.Items[flowfabric.SubmitResult], error) {
	good := all
	if slices.ContainsFunc(refusals, func(err error) bool { return err != nil }) {
		good = nil
		for i := range all {
			if refusals[i] == nil {
				good = append(good, all[i])
			}
		}
	}
	x := exchangeOf(ctx)
	if err := s.keys.submit(ctx, x.caller.Namespace, len(good)); err != nil {
		return nil, err
	}
	results, err := s.client.SubmitMany(ctx, good, o)
	if err != nil {
		return nil, err
	}
	answers := wire.ItemsFor[flowfabric.SubmitResult](len(all))
	for i := range all {
		err := refusals[i]
		var result flowfabric.SubmitResult
		if err == nil {
			result, results = results[0], results[1:]
			err = result.Err
		}
		answers.Add(result, s.itemProblem(x, err))
	}
	return answers, nil
}
