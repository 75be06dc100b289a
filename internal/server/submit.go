package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveSubmits() {
	handle(s, wire.SubmitExecution, s.submit)
	handle(s, wire.SubmitExecutions, s.submitMany)
}

// submit hands in one piece of work (U32).
func (s *Server) submit(ctx context.Context, x *exchange, r *wire.SubmitRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	given, err := r.Submission()
	if err != nil {
		return answer{}, err
	}
	if err := s.keys.submit(ctx, x.caller.Namespace, 1); err != nil {
		return answer{}, err
	}
	result, err := ask(ctx, s, x.by, wire.SubmitAndShow, &wire.SubmitRequest{Body: given})
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated}
	if result.Duplicate {
		a.status = http.StatusOK
	}
	seen := true
	if result.Duplicate {
		if seen, err = s.seesDuplicate(ctx, x, result.ID); err != nil && !errors.Is(err, api.ErrNotFound) {
			return answer{}, err
		}
	}
	execution := result.Created
	if seen && (execution == nil || wait.atMost > 0) {
		execution, err = s.executionNow(ctx, x, result.ID, wait.atMost)
	}
	switch {
	case !seen, errors.Is(err, api.ErrNotFound): // of an old key nothing is left but the id
		a.body = &result.SubmitResult
	case err != nil:
		return answer{}, err
	default:
		a.body = flat{outcomeOnly{result.Outcome()}, shown(execution, "", r.Encoding)}
	}
	return wait.applied(a.with("Location", "/v1/executions/"+string(result.ID))), nil
}

// seesDuplicate reports whether the caller may read an execution that another submit made, as it would be by its id (U122): whoever knows an
// idempotency key or an id, and what was submitted under it, is told no more than that.
func (s *Server) seesDuplicate(ctx context.Context, x *exchange, id api.ID) (bool, error) {
	for _, c := range wire.Allows(wire.GetExecution.Operation, x.caller.roles) {
		seen := true
		var err error
		switch c {
		case wire.OwnWork:
			seen, err = s.ownExecution(ctx, x, id)
		case wire.OwnLanes:
			if x.lanes() != nil {
				seen, err = s.inLanes(ctx, x, id)
			}
		}
		if seen || err != nil {
			return seen, err
		}
	}
	return false, nil
}

// outcomeOnly precedes the fields that it is the outcome for.
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
func (s *Server) submitMany(ctx context.Context, x *exchange, r *wire.SubmitManyRequest) (answer, error) {
	if isLines(x.r) {
		return answer{stream: s.submitLines}, nil
	}
	answers, err := s.submitAll(ctx, x, x.by, r, make([]error, len(r.Body.Items)))
	return shows(answers), err
}

// submitAll submits a batch, and answers for every item: also for those that were refused already, which are not in the batch.
func (s *Server) submitAll(ctx context.Context, x *exchange, by service.Caller, r *wire.SubmitManyRequest, refusals []error) (*wire.Items[api.SubmitResult], error) {
	if err := s.keys.submit(ctx, x.caller.Namespace, len(r.Body.Items)); err != nil {
		return nil, err
	}
	results, err := ask(ctx, s, by, wire.SubmitMany, r)
	if err != nil {
		return nil, err
	}
	answers, next := wire.ItemsFor[api.SubmitResult](len(refusals)), *results
	for _, refusal := range refusals {
		var result api.SubmitResult
		if refusal == nil {
			result, next = next[0], next[1:]
			refusal = result.Err
		}
		answers.Add(result, s.itemProblem(x, refusal))
	}
	return answers, nil
}
