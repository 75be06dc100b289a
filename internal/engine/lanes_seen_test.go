package engine_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// of is a caller of one namespace.
func of(namespace string) engine.Caller {
	return engine.Caller{Principal: namespace, Actor: "client", Namespaces: []string{namespace}}
}

// lanesOf are the lanes that a caller is shown, and those of which it reads in events that they were changed.
func (w *world) lanesOf(c engine.Caller) (listed, changed []string) {
	w.t.Helper()
	views, _, err := w.e.Lanes(w.ctx(), c, "", nil)
	ok(w.t, err)
	for _, view := range views {
		listed = append(listed, view.Lane.Name)
	}
	events := must(w.e.ReadEvents(w.ctx(), c, engine.EventsRequest{After: "start", Limit: 1000, Filter: engine.EventFilter{Kinds: []string{"lane."}}}))(w.t)
	for _, ev := range events.Events {
		changed = append(changed, ev.Class.Lane)
	}
	return listed, changed
}

// A lane that the submit of one namespace made stays its own when an operator changes it: no other namespace sees it (U121).
func TestI14_U121_a_change_of_a_lane_is_told_to_those_who_see_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Namespace: "acme", Lane: "theirs"})
		pause := func(lane string) {
			t.Helper()
			must(w.e.SetLaneState(w.ctx(), operator, lane, core.LanePaused, engine.Operator{}))(t)
		}
		pause("theirs")
		w.submit(core.Submission{Namespace: "mine", Lane: "own"})
		pause("own")
		w.lane("for-all", core.LaneSettings{MaxConcurrent: 3})
		listed, changed := w.lanesOf(of("mine"))
		same(t, "listed", listed, []string{"for-all", "own"})
		same(t, "changed", changed, []string{"own", "for-all"})
		_, err := w.e.GetLane(w.ctx(), of("mine"), "theirs")
		refused(t, err, base.CodeLaneNotFound)
		listed, changed = w.lanesOf(of("acme"))
		same(t, "listed", listed, []string{"for-all", "theirs"})
		same(t, "changed", changed, []string{"theirs", "for-all"})
		listed, changed = w.lanesOf(operator)
		same(t, "all", []int{len(slices.DeleteFunc(listed, func(name string) bool { return name == "default" })), len(changed)}, []int{3, 3})
	})
}

func TestI14_U121_the_weights_of_other_namespaces_and_of_their_keys_are_not_shown(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.namespace("planned", core.NamespaceSettings{})
		w.submit(core.Submission{Namespace: "acme", Lane: "l", PolicyJSON: []byte(`{"fairness_key":"acme-user"}`)})
		w.submit(core.Submission{Namespace: "mine", Lane: "l", PolicyJSON: []byte(`{"fairness_key":"user"}`)})
		all := map[string]int{"acme": 2, "acme-user": 3, "planned": 4, "mine": 5, "user": 6, "missing": 7}
		w.lane("l", core.LaneSettings{Fairness: core.FairnessByKey, FairnessWeights: all})
		seen := func(c engine.Caller) (read, told map[string]int) {
			t.Helper()
			read = must(w.e.GetLane(w.ctx(), c, "l"))(t).Lane.Settings.FairnessWeights
			page := must(w.e.ReadEvents(w.ctx(), c, engine.EventsRequest{After: "start", Filter: engine.EventFilter{Kinds: []string{"lane.changed"}}}))(t)
			var data struct {
				New core.LaneSettings `json:"new"`
			}
			ok(t, json.Unmarshal(page.Events[0].Data.JSON(), &data))
			return read, data.New.FairnessWeights
		}
		for c, want := range map[string]map[string]int{
			"mine": {"mine": 5, "user": 6, "missing": 7}, "acme": {"acme": 2, "acme-user": 3, "missing": 7},
		} {
			read, told := seen(of(c))
			same(t, "read by "+c, read, want)
			same(t, "told to "+c, told, want)
		}
		read, told := seen(operator)
		same(t, "read by an operator of all", read, all)
		same(t, "told to one", told, all)
	})
}

// eventKinds are the kinds of events that the documentation lists: its table is held to the code by test/docs.
func eventKinds(t *testing.T) (kinds []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/events.md")
	ok(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		kinds = append(kinds, row[1])
	}
	if len(kinds) < 50 {
		t.Fatalf("the documentation lists %d kinds", len(kinds))
	}
	return kinds
}

// Of whatever kind an event is: that of another namespace is not shown, and one of no namespace only if it is of what all share.
func TestI14_E35_events_of_every_kind_are_shown_to_those_of_their_namespace_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		changes := &store.Changes{}
		for _, namespace := range []string{"acme", "mine", ""} {
			for _, kind := range eventKinds(t) {
				changes.Events = append(changes.Events, core.Event{
					Kind: kind, At: w.now(), Namespace: namespace, AttemptIndex: -1, Actor: core.EngineActor(), Data: eventdata.OfJSON(json.RawMessage(`{}`)),
				})
			}
		}
		tx, _, err := w.store.Begin(w.ctx(), store.Want{})
		ok(t, err)
		ok(t, tx.Commit(w.ctx(), changes))
		w.submit(core.Submission{Namespace: "mine", Kind: "last"})
		shown := map[string][]string{}
		eventually(t, "all is shown that is to be", func() bool {
			clear(shown)
			for _, ev := range must(w.e.ReadEvents(w.ctx(), of("mine"), engine.EventsRequest{After: "start", Limit: 1000}))(t).Events {
				shown[ev.Namespace] = append(shown[ev.Namespace], ev.Kind)
			}
			return len(shown["mine"]) > 0 && shown["mine"][len(shown["mine"])-1] == "execution.submitted"
		})
		same(t, "of its own", shown["mine"][:len(shown["mine"])-1], eventKinds(t))
		others := slices.Concat(shown["acme"], slices.DeleteFunc(shown[""], func(kind string) bool { return strings.HasPrefix(kind, "quota.") }))
		if len(others) > 0 {
			t.Errorf("%v of another namespace, or of none, are shown", others)
		}
	})
}
