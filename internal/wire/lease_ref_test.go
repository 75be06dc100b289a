package wire

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}`

func anyLeaseRef(t *rapid.T) LeaseRef {
	return LeaseRef{
		LeaseID: rapid.StringMatching(uuidPattern).Draw(t, "lease"), Epoch: rapid.Int64Range(0, 1<<62).Draw(t, "epoch"),
		AttemptID: rapid.StringMatching(uuidPattern).Draw(t, "attempt"),
	}
}

func TestU27_a_lease_comes_back_from_all_its_forms(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		want := anyLeaseRef(t)
		task := LeaseOf(api.Lease{
			ExecutionID: "{fp:1}:x", ID: want.LeaseID, Epoch: want.Epoch, AttemptID: want.AttemptID, AttemptIndex: 3,
			ExpiresAt: anyTime(t).Time, TTL: 30 * time.Second,
		})
		if got, err := ParseLeaseRef(want.String()); err != nil || got != want {
			t.Fatalf("text: %+v %v", got, err)
		}
		for name, form := range map[string]any{"the task's object": task, "parts": want, "text": want.String(), "the fence alone": Lease{Fence: want.String()}} {
			text, err := Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			var got LeaseRef
			if err := Unmarshal(text, &got); err != nil || got != want {
				t.Fatalf("%s: %s became %+v: %v", name, text, got, err)
			}
		}
	})
}

func TestU27_what_is_no_lease_is_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ".", "..", "a.1", "a..b", "a.x.b", "a.-1.b", "a.01.b", "a.+1.b", ".1.b", "a.1.", "a.1.b.c", "a.9223372036854775808.b"} {
		if got, err := ParseLeaseRef(text); err == nil {
			t.Errorf("%q became %+v", text, got)
		}
	}
	var got LeaseRef
	if err := DecodeJSON([]byte(`{"lease_id":"a","lease_epoch":2,"attempt_id":"b","fence":"a.1.b"}`), &got); err == nil {
		t.Errorf("a fence that contradicts its parts became %+v", got)
	}
}

func TestU27_missing_parts_are_left_to_the_rules(t *testing.T) {
	t.Parallel()
	var got LeaseRef
	if err := DecodeJSON([]byte(`{"lease_id":"a"}`), &got); err != nil || got != (LeaseRef{LeaseID: "a"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestU27_the_lease_stands_in_body_or_header(t *testing.T) {
	t.Parallel()
	a, b := LeaseRef{"a", 1, "x"}, LeaseRef{"b", 1, "x"}
	for _, c := range []struct {
		body, header, want LeaseRef
		refused            bool
	}{{a, LeaseRef{}, a, false}, {LeaseRef{}, a, a, false}, {a, a, a, false}, {LeaseRef{}, LeaseRef{}, LeaseRef{}, false}, {a, b, LeaseRef{}, true}} {
		if got, err := PickLease(c.body, c.header); got != c.want || (err != nil) != c.refused {
			t.Errorf("%v and %v: %v %v", c.body, c.header, got, err)
		}
	}
}

func TestU61_a_lease_of_a_heartbeat_names_its_execution(t *testing.T) {
	t.Parallel()
	var got HeldLease
	if err := DecodeJSON([]byte(`{"execution_id":"x","lease_id":"a","lease_epoch":1,"attempt_id":"b","ttl_ms":5}`), &got); err != nil ||
		got != (HeldLease{"x", LeaseRef{"a", 1, "b"}}) {
		t.Errorf("%+v %v", got, err)
	}
	for text, want := range map[string]string{
		`{"lease_id":"a"}`: "missing_field: /execution_id: this field is required",
		`"a.1.b"`:          "invalid_argument: expected a lease object, found a string",
	} {
		if err := DecodeJSON([]byte(text), new(HeldLease)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
