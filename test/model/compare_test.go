package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// same says what counts as equal: absent and empty lists, policies with one canonical text.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(core.Execution{}, "Version"),            // counted by stores
	cmpopts.IgnoreFields(keyring.RotateOutcome{}, "PurgedCount"), // the sweep may have been faster
	cmpopts.IgnoreFields(started{}, "Total"),                     // counted in the search rows, which are waited for no longer than a second (L131)
	cmp.Comparer(func(a, b *core.Policy) bool {
		return a == b || a != nil && b != nil && bytes.Equal(a.Canonical(), b.Canonical())
	}),
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
		if diff := compare(settledWant.x, settledGot.x, plainRecord); diff != "" {
			return fmt.Sprintf("record of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		if diff := compare(settledWant.history, settledGot.history, histories); diff != "" {
			return fmt.Sprintf("lease history of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		if a, b := dossierLines(&settledWant.d), dossierLines(&settledGot.d); !slices.Equal(a, b) {
			diff := cmp.Diff(a, b)
			return fmt.Sprintf("waits of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		if diff := m.steps(s, want); diff != "" {
			return diff
		}
		agreed := s.agreed[id]
		if diff := compareEvents(slices.Concat(m.told[id][agreed:], toldWant), slices.Concat(s.told[id][agreed:], toldGot)); diff != "" {
			return fmt.Sprintf("events of %s (-model +%s):\n%s", want.x.ID, s.name, diff)
		}
		s.agreed[id] = min(len(m.told[id]), len(s.told[id]))
	}
	for id, told := range m.told { // those of deleted executions too
		if m.records[id] == nil {
			if diff := compareEvents(told[s.agreed[id]:], s.told[id][s.agreed[id]:]); diff != "" {
				return fmt.Sprintf("events of %s, which is gone (-model +%s):\n%s", id, s.name, diff)
			}
		}
	}
	if diff := compareEvents(m.lanesOf, s.lanesOf); diff != "" {
		return fmt.Sprintf("events of lanes (-model +%s):\n%s", s.name, diff)
	}
	return ""
}

// compare is cmp.Diff for values that are nearly always equal: it looks closer only where their JSON differs.
func compare[T any](want, got T, plain func(T) T) string {
	want, got = plain(want), plain(got)
	a, errA := json.Marshal(want)
	b, errB := json.Marshal(got)
	if errA == nil && errB == nil && bytes.Equal(a, b) {
		return ""
	}
	return cmp.Diff(want, got, same)
}

// plainRecord leaves out what only a store or the engine's filing gives, and writes an empty input in one way.
func plainRecord(x *core.Execution) *core.Execution {
	copied, class := *x, *x.Class
	class.ID = 0
	copied.Class, copied.OrderKey, copied.TimerAt = &class, 0, 0
	copied.Input.Data = append([]byte{}, x.Input.Data...)
	return &copied
}

// histories leaves out the bytes of results, which are the record's, and a mark that only concerns the write.
func histories(entries []core.LeaseRecord) []core.LeaseRecord {
	copied := slices.Clone(entries)
	for i := range copied {
		copied[i].Replaces = false
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

func compareEvents(want, got []core.Event) string {
	a, b := lines(want), lines(got)
	if slices.Equal(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}

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
			ev.Actor.Type, ev.Actor.ID, ev.RequestID, string(ev.Data.JSON()),
		}, " | ")
	}
	return all
}
