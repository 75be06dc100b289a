package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

func TestU9_a_budget_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)
	limits := map[string]api.BudgetLimits{"tokens": {Hard: 10, Soft: 5, DefaultReserve: 1}, "calls": {}}
	for text, given := range map[string]any{
		`{"name":"b","scope":{"type":"lane","value":"mail"},"budget_id":"i","parent":"p","dimensions":{"calls":{},"tokens":{"hard":10,"soft":5,"default_reserve":1}},` +
			`"reset":{"type":"interval","every_ms":60000,"anchor_at":"2026-01-01T06:00:00.000Z"},"on_hard":"fail","on_lease_loss":"forfeit","approval":{"timeout_ms":1000}}`: &api.Budget{
			ID: "i", Name: "b", Scope: api.BudgetScope{Type: "lane", Value: "mail"}, Parent: "p", Dimensions: limits,
			Reset:  api.BudgetReset{Type: "interval", Every: time.Minute, AnchorAt: anchor},
			OnHard: api.FailReporter, OnLeaseLoss: api.ForfeitReserved, Approval: api.BudgetApproval{Timeout: time.Second},
		},
		`{"name":"b","dimensions":{"calls":{},"tokens":{"hard":10,"soft":5,"default_reserve":1}},"reset":{"type":"calendar","unit":"day","timezone":"Europe/Berlin"}}`: &api.BudgetDefinition{
			Name: "b", Dimensions: limits, Reset: api.BudgetReset{Type: "calendar", Unit: "day", Timezone: "Europe/Berlin"},
		},
		`{"reset":{"type":"none"},"approval":{"timeout_ms":1000,"timeout_behavior":"cancel","default_raise":{"tokens":5}}}`: &api.BudgetUpdate{
			Reset: &api.BudgetReset{Type: "none"}, Approval: &api.BudgetApproval{Timeout: time.Second, OnTimeout: api.CancelOnTimeout, DefaultRaise: map[string]int64{"tokens": 5}},
		},
	} {
		written, err := json.Marshal(given)
		if err != nil || string(written) != text {
			t.Errorf("%s, %v\nwant %s", written, err, text)
		}
		read := reflect.New(reflect.TypeOf(given).Elem()).Interface()
		if err := json.Unmarshal(written, read); err != nil || !reflect.DeepEqual(read, given) {
			t.Errorf("%+v, %v\nwant %+v", read, err, given)
		}
	}
}

func TestU95_what_a_definition_leaves_out_is_written_as_the_rules_read_it(t *testing.T) {
	t.Parallel()
	for text, given := range map[string]any{
		`{"name":"","dimensions":{}}`:            api.Budget{},
		`[{"dimensions":{}}]`:                    []api.BudgetDefinition{{}},
		`{"type":"none"}`:                        api.BudgetReset{},
		`{"type":"interval","every_ms":3600000}`: api.BudgetReset{Every: time.Hour},
		`{"type":"calendar","unit":"week"}`:      api.BudgetReset{Unit: "week"},
	} {
		if written, err := json.Marshal(given); err != nil || string(written) != text {
			t.Errorf("%s, %v, want %s", written, err, text)
		}
	}
}

func TestU11_of_several_limits_of_0_the_same_is_refused_each_time(t *testing.T) {
	t.Parallel()
	const text = `{"name":"b","dimensions":{"d":{"hard":0},"c":{"soft":0},"b":{"soft":0,"hard":0,"default_reserve":0},"a":{"hard":1}}}`
	for range 50 {
		var budget api.Budget
		var own api.BudgetDefinition
		for _, read := range []json.Unmarshaler{&budget, &own} {
			err := read.UnmarshalJSON([]byte(text))
			var refusal *api.Error
			if !errors.As(err, &refusal) || refusal.Code != "invalid_budget" || refusal.Field != "dimensions.b.hard" || refusal.Hint == "" {
				t.Fatalf("%T: %v", read, err)
			}
		}
		if budget.Name+own.Name != "" {
			t.Fatalf("what is refused was read: %+v, %+v", budget, own)
		}
	}
}

func TestU22_a_limit_of_0_is_kept_until_its_item_is_checked(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		`{"dimensions":{"tokens":{"hard":0}}}`:                              true,
		`{"dimensions":{"tokens":{"soft":0}}}`:                              true,
		`{"dimensions":{"tokens":{"hard":5,"soft":0}}}`:                     true,
		`{"dimensions":{"tokens":{"hard":5,"soft":4}}}`:                     false,
		`{"dimensions":{"tokens":{"hard":5,"soft":4,"default_reserve":1}}}`: false,
		`{"dimensions":{"tokens":{}}}`:                                      false,
	} {
		var read api.BudgetDefinition
		if err := jsonx.Decode([]byte(text), &read); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := read.CheckLimits(); (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
		if written, err := json.Marshal(read); err != nil || string(written) != text {
			t.Errorf("%s, %v, want %s", written, err, text)
		}
	}
}

func TestU74_a_repeat_shows_the_first_receipt(t *testing.T) {
	t.Parallel()
	first := api.UsageReceipt{Outcome: api.UsageSoftBreach, Applied: true, Action: api.ActionNone}
	again := first
	again.Outcome, again.FirstOutcome = api.UsageApplied, first.Outcome
	if first.Repeated() || !again.Repeated() || !reflect.DeepEqual(again.First(), first) || !reflect.DeepEqual(first.First(), first) {
		t.Errorf("%+v, %+v", again.First(), first.First())
	}
}
