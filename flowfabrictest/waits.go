package flowfabrictest

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Approve approves at the open waitpoint with that key, as an operator with that name, and settles. It fails the test if the
// execution has no such waitpoint.
func (e *Env) Approve(id flowfabric.ID, key, by string) {
	e.tb.Helper()
	e.decide(id, key, by, ops.Approve{Name: "approved"})
}

// Reject rejects with a comment.
func (e *Env) Reject(id flowfabric.ID, key, by, comment string) {
	e.tb.Helper()
	e.decide(id, key, by, ops.Approve{Name: "rejected", Comment: comment})
}

func (e *Env) decide(id flowfabric.ID, key, by string, a ops.Approve) {
	e.tb.Helper()
	e.Settle()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if a.WaitpointID, err = e.openWaitpoint(ctx, id, key); err == nil {
		_, err = e.as(by).Operate().Approve(ctx, id, a)
	}
	if err != nil {
		e.tb.Fatalf("flowfabrictest: %s by %s at %q: %v", a.Name, by, key, err)
	}
	e.Settle()
}

// as returns a client that acts as another principal.
func (e *Env) as(name string) *flowfabric.Client {
	namespace := e.namespace()
	acting, _ := inprocess.As(e.Client, service.Caller{Name: name, Namespace: namespace, Namespaces: []string{namespace}, Operator: true})
	return acting
}

// openWaitpoint finds the waitpoint with that key that the execution waits at, or else a pending one.
func (e *Env) openWaitpoint(ctx context.Context, id flowfabric.ID, key string) (found string, err error) {
	for w, err := range e.Waitpoints().List(ctx, ops.WaitpointQuery{ExecutionID: id, Key: key}) {
		if err != nil {
			return "", err
		}
		if w.State == flowfabric.WaitpointActive {
			return w.ID, nil
		}
		found = w.ID
	}
	if found == "" {
		return "", fmt.Errorf("execution %s has no open waitpoint %q", id, key)
	}
	return found, nil
}

// waitsDue lists the moments at which waits end by themselves: timeouts of suspensions, and the expiry of waitpoints at which nothing
// waits yet.
func (e *Env) waitsDue() []time.Time {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var due []time.Time
	for w, err := range e.alive(ctx).client.Waitpoints().List(ctx) {
		if err != nil {
			e.tb.Errorf("flowfabrictest: list waitpoints: %v", err)
			return nil
		}
		if !w.ExpiresAt.IsZero() {
			due = append(due, w.ExpiresAt)
		}
	}
	for s, err := range e.alive(ctx).client.Waitpoints().Suspended(ctx) {
		if err != nil {
			e.tb.Errorf("flowfabrictest: list suspended executions: %v", err)
			return nil
		}
		if !s.TimeoutAt.IsZero() {
			due = append(due, s.TimeoutAt)
		}
	}
	return due
}

// waitProblems checks that a suspended execution waits for something that can still happen, and that no other execution has an
// open suspension.
func (e *Env) waitProblems(x *flowfabric.Execution, now time.Time) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	last, err := e.alive(ctx).client.Executions().Suspension(ctx, x.ID)
	if err != nil {
		return []string{fmt.Sprintf("its suspension cannot be read: %v", err)}
	}
	open := last != nil && last.Cause == ""
	switch suspended := x.Status == flowfabric.StatusSuspended; {
	case suspended != open:
		return []string{fmt.Sprintf("it is %s, and that a suspension of it is open is %t", x.Status, open)}
	case suspended && !last.TimeoutAt.IsZero() && last.TimeoutAt.Add(late).Before(now):
		return []string{fmt.Sprintf("it is suspended, and its timeout was %s ago", now.Sub(last.TimeoutAt))}
	}
	return nil
}
