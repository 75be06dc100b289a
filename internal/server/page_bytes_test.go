package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// byBytes are the lists whose items hold payloads, and what bounds a page of them in bytes.
var byBytes = map[string]string{
	wire.ListAttempts.ID:         "TestU16_U41_a_page_of_attempts_ends_before_it_is_too_large",
	wire.ListSteps.ID:            "a page ends at 8 MiB of results: TestU42_",
	wire.ListExecutionSignals.ID: "a page ends at 8 MiB of payloads, by the engine: TestW85_a_page_of_large_signals_ends_before_it_is_too_large",
	wire.ListSuspensions.ID:      "a list of waits has no bytes of continuations and signals",
	wire.ListSuspended.ID:        "a list of waits has no bytes of continuations and signals",
	wire.ListApprovals.ID:        "a list of waits has no bytes of continuations and signals",
	wire.ListAudit.ID:            "rows tell changed fields, and never a payload",
	wire.ListExecutions.ID:       "summaries have no payloads",
	wire.ListWorkerLeases.ID:     "summaries have no payloads",
}

func TestU16_every_list_of_payloads_is_bounded_in_bytes(t *testing.T) {
	t.Parallel()
	for _, o := range wire.Operations() {
		if o.Reserved || !strings.HasPrefix(o.Answer.Name(), "Page[") {
			continue
		}
		if holds := payloadIn(o.Answer, map[reflect.Type]bool{}); holds != "" && byBytes[o.ID] == "" {
			t.Errorf("%s: say what bounds a page of items with %s", o.ID, holds)
		} else if holds == "" && byBytes[o.ID] != "" {
			t.Errorf("%s holds no payloads", o.ID)
		}
	}
}

// payloadIn is the name of a field of the type that holds bytes of somebody's; "": there is none.
func payloadIn(of reflect.Type, seen map[reflect.Type]bool) string {
	switch {
	case seen[of]:
	case of == reflect.TypeFor[json.RawMessage]():
		return "JSON"
	case of == reflect.TypeFor[api.Payload]():
		return "a payload"
	case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map:
		seen[of] = true
		return payloadIn(of.Elem(), seen)
	case of.Kind() == reflect.Struct:
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Type.Kind() == reflect.String && strings.Contains(f.Tag.Get("json"), "_bytes") || payloadIn(f.Type, seen) != "" {
				return f.Name
			}
		}
	}
	return ""
}

func TestU16_U41_a_page_of_attempts_ends_before_it_is_too_large(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const attempts, most = 160, 8 << 20 // of 64 KiB each
		id := w.post(t, "/v1/executions", fmt.Sprintf(`{"kind":"job","policy":{"retry_policy":{"max_retries":%d,"backoff":{"strategy":"fixed","delay_ms":0}}}}`, attempts)).wants(t, 201).text(t, "execution_id")
		for range attempts {
			_, lease := w.claimed(t)
			w.post(t, "/v1/executions/"+id+"/fail", `{"lease":`+lease+`,"message":"m","retry_after_ms":0,"detail_text":"`+strings.Repeat("x", 64<<10)+`"}`).wants(t, 200)
		}
		shown, cursor := 0, ""
		for first := true; first || cursor != ""; first = false {
			page := w.get(t, "/v1/executions/"+id+"/attempts?limit=1000&cursor="+cursor).wants(t, 200)
			if len(page.body) > most+most/8 {
				t.Errorf("a page has %d bytes", len(page.body))
			}
			shown += len(page.field(t, "items").([]any))
			cursor = page.text(t, "next_cursor")
		}
		if shown < attempts {
			t.Errorf("%d attempts of %d are shown", shown, attempts)
		}
	})
}
