// Package top is the live view of a FlowFabric: its data, keys and drawing. It does not know the command line.
package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// Options select what is shown.
type Options struct {
	Lane, Kind string        // only these; "": all
	StuckAfter time.Duration // ready work that waits longer is stuck
}

// Snapshot is the result of one refresh.
type Snapshot struct {
	AsOf    time.Time               `json:"as_of"`
	Lanes   []*api.Lane             `json:"lanes"`
	Workers []*api.Worker           `json:"workers"`
	Running []*flowfabric.Execution `json:"running"` // longest first
	Stuck   []Stuck                 `json:"stuck"`
	Failed  []*flowfabric.Execution `json:"failed"` // newest first
	More    bool                    `json:"more"`   // some list was truncated
}

// Stuck is an execution that makes no progress, with the likely cause.
type Stuck struct {
	Execution *flowfabric.Execution `json:"execution"`
	Why       string                `json:"why"`
}

const (
	pageSize    = 100 // entries read per list
	manyRetries = 3   // attempts from which repeated failures count as stuck
)

// Look reads one snapshot with six sequential calls, each at most one page.
func Look(ctx context.Context, c *flowfabric.Client, o Options) (*Snapshot, error) {
	snap := &Snapshot{Stuck: []Stuck{}}
	lanes, err := c.Lanes().Page(ctx, flowfabric.PageOptions{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	workers, err := c.Workers().Page(ctx, ops.WorkerFilter{Lane: o.Lane, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	snap.More = lanes.NextCursor != "" || workers.NextCursor != ""
	snap.Lanes, snap.Workers = orEmpty(lanes.Items), orEmpty(workers.Items)
	if o.Lane != "" {
		snap.Lanes = slices.DeleteFunc(snap.Lanes, func(l *api.Lane) bool { return l.Name != o.Lane })
	}
	page := func(order ops.Order, f ops.Filter) []*flowfabric.Execution {
		if err != nil {
			return nil
		}
		f.Lane, f.Kind = only(o.Lane), only(o.Kind)
		var found flowfabric.Page[*flowfabric.Execution]
		found, err = c.Executions().Page(ctx, ops.ListOptions{Filter: f, Order: order, Limit: pageSize})
		snap.More = snap.More || found.NextCursor != ""
		if !found.AsOf.IsZero() {
			snap.AsOf = found.AsOf
		}
		return orEmpty(found.Items)
	}
	waiting := page(ops.CreatedAsc, ops.Filter{Status: []flowfabric.Status{flowfabric.StatusReady}})
	again := page(ops.CreatedAsc, ops.Filter{Status: []flowfabric.Status{flowfabric.StatusDelayed}, Next: []string{"retry"}})
	snap.Failed = page(ops.CompletedDesc, ops.Filter{Status: []flowfabric.Status{flowfabric.StatusFailed}})
	snap.Running = page(ops.CreatedAsc, ops.Filter{Status: []flowfabric.Status{flowfabric.StatusRunning}})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(snap.Running, func(a, b *flowfabric.Execution) int { return a.StatusSince.Compare(b.StatusSince) })
	snap.findStuck(o, slices.Concat(snap.Running, waiting, again))
	return snap, nil
}

// orEmpty replaces a nil list, so that it is not null in JSON.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func only(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// findStuck selects executions that make no progress.
func (s *Snapshot) findStuck(o Options, all []*flowfabric.Execution) {
	for _, x := range all {
		if why := s.whyStuck(o, x); why != "" {
			s.Stuck = append(s.Stuck, Stuck{x, why})
		}
	}
}

// whyStuck returns why an execution makes no progress; "" if it does, as far as lists show.
func (s *Snapshot) whyStuck(o Options, x *flowfabric.Execution) string {
	switch {
	case x.Status == flowfabric.StatusRunning && x.Lease != nil && x.Lease.ExpiresAt.Before(s.AsOf):
		return "lease lapsed " + show.Span(s.AsOf.Sub(x.Lease.ExpiresAt)) + " ago"
	case x.RetryCount+x.ReclaimCount >= manyRetries:
		return again(x)
	case x.Status == flowfabric.StatusReady && s.AsOf.Sub(x.StatusSince) >= o.StuckAfter:
		return s.whyWaiting(x)
	default:
		return ""
	}
}

func again(x *flowfabric.Execution) string {
	text := fmt.Sprintf("%d retries", x.RetryCount)
	if x.ReclaimCount > 0 {
		text += fmt.Sprintf(", %d reclaims", x.ReclaimCount)
	}
	if x.Failure != nil {
		text += ": " + x.Failure.Message
	}
	return text
}

// whyWaiting returns why ready work is not claimed. Lists do not contain required capabilities, so the last cause is inferred.
func (s *Snapshot) whyWaiting(x *flowfabric.Execution) string {
	if i := slices.IndexFunc(s.Lanes, func(l *api.Lane) bool { return l.Name == x.Lane }); i >= 0 {
		lane := s.Lanes[i]
		if state := lane.State; state == api.LanePaused || state == api.LaneDisabled {
			return "the lane is " + string(state)
		}
		if most := lane.MaxConcurrent; most > 0 && lane.Counts[flowfabric.StatusRunning] >= most {
			return fmt.Sprintf("the lane is full: %d at a time", most)
		}
	}
	takers, free := 0, 0
	for _, w := range s.Workers {
		if !takes(w, x) {
			continue
		}
		takers++
		if w.Leases < w.MaxConcurrent {
			free++
		}
	}
	switch {
	case takers == 0:
		return "no worker for it"
	case free == 0:
		return "its workers are busy"
	default:
		return "no free worker has the required capabilities"
	}
}

// takes reports whether a worker claims such work.
func takes(w *api.Worker, x *flowfabric.Execution) bool {
	return w.State == "live" && slices.Contains(w.Lanes, x.Lane) &&
		(len(w.Kinds) == 0 || slices.Contains(w.Kinds, x.Kind)) && (len(w.Namespaces) == 0 || slices.Contains(w.Namespaces, x.Namespace))
}

// Narrow keeps entries whose lane or kind contains the text.
func (s *Snapshot) Narrow(text string) *Snapshot {
	if text == "" {
		return s
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, text) })
	}
	of := func(x *flowfabric.Execution) bool { return has(x.Lane, x.Kind) }
	kept := *s
	kept.Lanes = filtered(s.Lanes, func(l *api.Lane) bool { return has(l.Name) })
	kept.Workers = filtered(s.Workers, func(w *api.Worker) bool { return has(w.Lanes...) || has(w.Kinds...) })
	kept.Running, kept.Failed = filtered(s.Running, of), filtered(s.Failed, of)
	kept.Stuck = filtered(s.Stuck, func(x Stuck) bool { return of(x.Execution) })
	return &kept
}

func filtered[T any](items []T, keep func(T) bool) []T {
	kept := []T{}
	for _, item := range items {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}
