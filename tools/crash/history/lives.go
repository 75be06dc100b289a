package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkLives: the calls of each execution can be put into one order in which each has the answer that it got (porcupine). Calls of unknown outcome
// may have taken effect at any later time, or never.
func checkLives(f *Facts) (all []Finding) {
	byExecution := map[string][]Call{}
	submitted := map[string]bool{}
	byKey := map[string]string{}
	for _, c := range f.Calls {
		if c.Name == Submit && c.Outcome == Done {
			byKey[c.Key] = c.Execution
		}
	}
	for id, x := range f.Executions { // a submit without an answer has made what is stored under its key
		if x.Key != "" {
			byKey[x.Key] = id
		}
	}
	for _, c := range f.Calls {
		if c.Name == Submit {
			c.Execution = byKey[c.Key]
			submitted[c.Execution] = true
		}
		if c.Execution != "" && modelled(c) {
			byExecution[c.Execution] = append(byExecution[c.Execution], c)
		}
	}
	model := model()
	for _, id := range sorted(byExecution) {
		var operations []porcupine.Operation
		if !submitted[id] { // a member of a flow or a child
			operations = append(operations, porcupine.Operation{Input: asked{Call: Call{Name: Submit, Outcome: Done}}, Call: -1, Return: 0})
		}
		tried, open := map[string]bool{}, map[string]bool{}
		for _, c := range byExecution[id] {
			try := fmt.Sprint(c.Name, c.Key, c.Lease)
			// Of several unknown calls that would do the same only the first one matters: the later ones may take effect no earlier.
			if c.Outcome != Unknown || !open[try] {
				operations = append(operations, operation(c, tried[try]))
			}
			tried[try], open[try] = true, open[try] || c.Outcome == Unknown && c.Name != Replay
		}
		switch porcupine.CheckOperationsTimeout(model, operations, time.Minute) {
		case porcupine.Illegal:
			all = append(all, found("linear", id, "no order of its %d calls explains their answers", len(operations)))
		case porcupine.Unknown:
			all = append(all, found("linear", id, "an order of its %d calls was not found within a minute", len(operations)))
		}
	}
	return all
}

// modelled reports whether a call is part of the model: its answer says something about the execution, or it may have changed it.
func modelled(c Call) bool {
	switch c.Name {
	case Claim:
		return true
	case Get:
		return c.Outcome != Unknown
	case Cancel:
		return c.Outcome != Refused || c.Code == "execution_not_active"
	case Submit, Replay, Complete, Fail:
		return c.Outcome != Refused
	case Effect, Sign, Flow:
		return false
	default:
		return c.Lease != "" && c.Outcome == Done
	}
}

// asked is a call; again: a worker made the same one before, so that its answer may be the recorded one.
type asked struct {
	Call
	again bool
}

// operation is a call in porcupine's form. A claim is known from the call of its handler: it was made some time before. An unknown call does
// not end.
func operation(c Call, again bool) porcupine.Operation {
	o := porcupine.Operation{Input: asked{c, again}, Call: c.Began, Return: c.Ended}
	if c.Name == Claim {
		o.Call = 0
	}
	if c.Outcome == Unknown {
		o.Return = math.MaxInt64
	}
	return o
}

// state is one execution.
type state struct {
	exists bool
	failed bool // an attempt failed under the last epoch: it may have ended, or be retried
	epoch  int64
	lease  string // that completed it
	end    string // status; "": it has not ended; other: it ended without a call, so that only its status is not known
	result string
}

// other is an end that the engine decided: failed, expired or skipped.
const other = "other"

func model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(before, input, _ any) []any {
			s, c := before.(state), input.(asked)
			after, possible := s.apply(c)
			var all []any
			if possible {
				all = append(all, after)
			}
			if c.Outcome == Unknown {
				all = append(all, s)
			}
			return all
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string { return input.(asked).String() },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return nondeterministic.ToModel()
}

// apply returns the state after a call, and whether its answer is possible.
func (s state) apply(c asked) (state, bool) {
	switch c.Name {
	case Submit:
		if c.Outcome == Refused {
			return s, true
		}
		s.exists = true
		return s, true
	case Claim:
		possible := s.exists && s.end == "" && c.Epoch > s.epoch
		s.epoch, s.failed = c.Epoch, false
		return s, possible
	case Get:
		return s.read(c.Call)
	case Cancel:
		return s.cancel(c.Call)
	case Replay:
		if c.Outcome == Refused {
			return s, true
		}
		possible := s.end != "" || s.failed
		s.end, s.result, s.lease, s.failed = "", "", "", false
		return s, possible
	case Complete:
		if s.end == "succeeded" { // a repeat gets the same answer
			return s, s.lease == c.Lease && s.result == c.Result
		}
		possible := s.end == "" && s.epoch == c.Epoch
		s.end, s.result, s.lease = "succeeded", c.Result, c.Lease
		return s, possible
	default: // other commands of a worker
		possible := s.epoch == c.Epoch && s.end == "" || c.again && s.epoch >= c.Epoch
		s.failed = s.failed || c.Name == Fail
		return s, possible
	}
}

// read compares what a reader saw.
func (s state) read(c Call) (state, bool) {
	if c.Outcome != Done {
		return s, c.Outcome == Unknown || c.Code != "execution_not_found" || !s.exists
	}
	switch saw := (Execution{Status: c.Value}); {
	case !s.exists:
		return s, false
	case !saw.Terminal():
		return s, s.end == ""
	case s.end == "" || s.end == other:
		s.end = c.Value
		return s, c.Value == "failed" || c.Value == "expired" || c.Value == "skipped"
	default:
		return s, s.end == c.Value && s.result == c.Result
	}
}

// cancel ends an execution; one that has ended otherwise refuses it.
func (s state) cancel(c Call) (state, bool) {
	if c.Outcome == Refused {
		if c.Code != "execution_not_active" {
			return s, true
		}
		if s.end == "" {
			s.end = other
		}
		return s, s.end != "cancelled"
	}
	possible := s.exists && (s.end == "" || s.end == "cancelled")
	s.end = "cancelled"
	return s, possible
}
