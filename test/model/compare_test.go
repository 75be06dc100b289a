package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowfabric/flowfabric/internal/core"
)

// same says what counts as equal: absent and empty lists, policies with one canonical text. Numbers that only a store or the
// engine's filing gives, and bytes that are kept elsewhere, are left out.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b *core.Policy) bool {
		return a == b || a != nil && b != nil && bytes.Equal(a.Canonical(), b.Canonical())
	}),
	cmpopts.IgnoreFields(core.Class{}, "ID"),
	cmpopts.IgnoreFields(core.Execution{}, "OrderKey", "TimerAt"),
	cmpopts.IgnoreFields(core.LeaseRecord{}, "Replaces"),
	cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Result.Data" && p.Index(0).Type().Name() == "LeaseRecord" }, cmp.Ignore()),
}

// difference tells how a store differs from the model; "" when it does not. Both are compared as they are once every due timer
// has acted: what a sweep has or has not done yet must not show (LI13).
func (m *reference) difference(s *subject, got *state) string {
	for id := range got.records {
		if m.records[id] == nil {
			return fmt.Sprintf("%s has %s, the model has not", s.name, id)
		}
	}
	for _, id := range m.sorted() {
		want := m.records[id]
		r := got.records[id]
		if r == nil {
			return fmt.Sprintf("the model has %s, %s has not", want.x.ID, s.name)
		}
		settledWant, toldWant := m.settled(want)
		settledGot, toldGot := m.settled(r)
		if diff := cmp.Diff(settledWant.x, settledGot.x, same); diff != "" {
			return fmt.Sprintf("record of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		if diff := cmp.Diff(histories(settledWant.history), histories(settledGot.history), same); diff != "" {
			return fmt.Sprintf("lease history of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		if diff := m.steps(s, want); diff != "" {
			return diff
		}
		if diff := compareEvents(slices.Concat(m.told[id], toldWant), slices.Concat(s.told[id], toldGot)); diff != "" {
			return fmt.Sprintf("events of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
	}
	for id, told := range m.told { // those of deleted executions too
		if m.records[id] == nil {
			if diff := compareEvents(told, s.told[id]); diff != "" {
				return fmt.Sprintf("events of %s, which is gone (-model +%s):\n%s", id, s.name, diff)
			}
		}
	}
	if diff := compareEvents(m.lanesOf, s.lanesOf); diff != "" {
		return fmt.Sprintf("events of lanes (-model +%s):\n%s", s.name, diff)
	}
	return ""
}

func histories(entries []core.LeaseRecord) []core.LeaseRecord {
	copied := slices.Clone(entries)
	for i := range copied {
		if r := copied[i].Result; r != nil {
			copied[i].Result = &core.Payload{ContentType: r.ContentType, Size: r.Size}
		}
	}
	return copied
}

// steps compares what the present run sees.
func (m *reference) steps(s *subject, want *record) string {
	if len(want.steps) == 0 {
		return ""
	}
	got, err := s.steps(want.x.ID)
	if err != nil {
		return fmt.Sprintf("steps of %s on %s: %v", want.x.ID, s.name, err)
	}
	if diff := cmp.Diff(want.visible(want.x.RunIndex()), got, same); diff != "" {
		return fmt.Sprintf("steps of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
	}
	return ""
}

func compareEvents(want, got []core.Event) string { return cmp.Diff(lines(want), lines(got)) }

// lines writes events so that they can be compared. The time of what the engine itself does depends on the sweep (LI13).
func lines(events []core.Event) []string {
	all := make([]string, len(events))
	for i, ev := range events {
		at := ev.At.String()
		if ev.Actor.Type == "engine" {
			at = "-"
		}
		class := core.Class{}
		if ev.Class != nil {
			class = *ev.Class
		}
		all[i] = strings.Join([]string{
			ev.Kind, at, ev.Namespace, class.Lane, class.Kind, fmt.Sprint(ev.AttemptIndex), ev.InstanceID, fmt.Sprint(ev.Tags),
			ev.Actor.Type, ev.Actor.ID, ev.RequestID, string(ev.Data),
		}, " | ")
	}
	return all
}
