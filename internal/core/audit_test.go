package core

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// drawnRow is a row with arbitrary texts.
func drawnRow(t *rapid.T) AuditRow {
	text := func(name string) string { return rapid.String().Draw(t, name) }
	row := AuditRow{
		At: base.Time(rapid.Int64Range(1, 1<<40).Draw(t, "at")), Namespace: text("namespace"), Principal: text("principal"), Action: text("action"),
		Entity: text("entity"), EntityID: text("id"), Reason: text("reason"), RequestID: text("request"), Address: text("address"), Outcome: text("outcome"),
	}
	row.Before, row.After = AuditChanges(map[string]string{"a": text("before")}, map[string]string{"a": text("after")})
	return row
}

// stored is a row as it comes back from a store.
func stored(t interface{ Fatal(...any) }, row AuditRow) AuditRow {
	body, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var read AuditRow
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestU131_a_row_follows_the_one_before_it_also_after_it_was_stored(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		chain := NewAuditChain(base.UUID{1}, "a")
		prev, at := chain.Anchor, base.Time(0)
		for n := int64(1); n <= 4; n++ {
			row := stored(t, chain.Append(drawnRow(t)))
			if why := row.Follows(n, prev); why != "" {
				t.Fatalf("row %d %s", n, why)
			}
			if row.At < at || chain.Last != n {
				t.Fatalf("row %d at %d after %d, last %d", n, row.At, at, chain.Last)
			}
			prev, at = row.Hash, row.At
		}
	})
}

func TestU131_a_change_of_any_field_is_found(t *testing.T) {
	t.Parallel()
	chain := NewAuditChain(base.UUID{1}, "a")
	good := chain.Append(AuditRow{
		At: 5, Namespace: "a", Principal: "p", Action: "c", Entity: "e", EntityID: "i", Reason: "r", RequestID: "q", Address: "d",
		Before: json.RawMessage(`{"x":1}`), After: json.RawMessage(`{"x":2}`), Outcome: AuditDone,
	})
	anchor := NewAuditChain(base.UUID{1}, "a").Anchor
	if why := good.Follows(1, anchor); why != "" {
		t.Fatal(why)
	}
	for name, spoil := range map[string]func(*AuditRow){
		"number": func(r *AuditRow) { r.Number++ }, "id": func(r *AuditRow) { r.ID[0]++ }, "at": func(r *AuditRow) { r.At++ },
		"namespace": func(r *AuditRow) { r.Namespace = "b" }, "principal": func(r *AuditRow) { r.Principal = "x" },
		"action": func(r *AuditRow) { r.Action = "x" }, "entity": func(r *AuditRow) { r.Entity = "ei"; r.EntityID = "" },
		"entity_id": func(r *AuditRow) { r.EntityID = "x" }, "reason": func(r *AuditRow) { r.Reason = "" },
		"request_id": func(r *AuditRow) { r.RequestID = "x" }, "address": func(r *AuditRow) { r.Address = "x" },
		"before": func(r *AuditRow) { r.Before = nil }, "after": func(r *AuditRow) { r.After = json.RawMessage(`{"x":3}`) },
		"outcome": func(r *AuditRow) { r.Outcome = "x" }, "prev_hash": func(r *AuditRow) { r.PrevHash = make([]byte, 32) },
		"hash": func(r *AuditRow) { r.Hash = make([]byte, 32) },
	} {
		bad := good
		spoil(&bad)
		if bad.Follows(1, anchor) == "" {
			t.Errorf("another %s is not noticed", name)
		}
	}
	if NewAuditChain(base.UUID{1}, "b").Anchor == nil || good.Follows(1, NewAuditChain(base.UUID{1}, "b").Anchor) == "" || good.Follows(1, NewAuditChain(base.UUID{2}, "a").Anchor) == "" {
		t.Error("a row fits into a chain that is not its own")
	}
}

func TestU131_retention_keeps_the_anchor(t *testing.T) {
	t.Parallel()
	chain := NewAuditChain(base.UUID{1}, "a")
	first, second := chain.Append(AuditRow{Action: "x"}), chain.Append(AuditRow{Action: "y"})
	chain.Drop(&first)
	if why := second.Follows(chain.First, chain.Anchor); why != "" || chain.First != 2 || chain.Last != 2 {
		t.Errorf("%q %+v", why, chain)
	}
}

func TestU131_a_row_tells_the_changed_fields_alone(t *testing.T) {
	t.Parallel()
	was, is := AuditChanges(AuditedExecution{Status: "ready", Priority: 1, ReplayCount: 2}, AuditedExecution{Status: "cancelled", Priority: 1, ReplayCount: 2})
	if string(was) != `{"status":"ready"}` || string(is) != `{"status":"cancelled"}` {
		t.Errorf("%s %s", was, is)
	}
	was, is = AuditChanges(nil, AuditedWorker{Draining: true})
	if was != nil || string(is) != `{"draining":true}` {
		t.Errorf("%s %s", was, is)
	}
	if was, is = AuditChanges(AuditedWorker{}, AuditedWorker{}); was != nil || is != nil {
		t.Errorf("%s %s", was, is)
	}
}

func TestU110_a_filter_holds_in_all_its_parts(t *testing.T) {
	t.Parallel()
	row := &AuditRow{At: 10, Principal: "p", Action: "a", Entity: "e", EntityID: "i"}
	for f, want := range map[AuditFilter]bool{
		{}: true, {Principal: "p", Action: "a", Entity: "e", EntityID: "i", From: 10, To: 11}: true,
		{Principal: "x"}: false, {Action: "x"}: false, {Entity: "x"}: false, {EntityID: "x"}: false, {From: 11}: false, {To: 10}: false,
	} {
		if f.Matches(row) != want {
			t.Errorf("%+v: %v", f, !want)
		}
	}
}

func TestU131_a_row_with_bytes_that_are_no_text_is_hashed_as_it_is_stored(t *testing.T) {
	t.Parallel()
	var chain AuditChain
	row := chain.Append(AuditRow{Namespace: "n", Action: "read\xff", EntityID: "a\xfe\xffb", Reason: "\xc3", Outcome: "role_required"})
	body, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var stored AuditRow
	if err := json.Unmarshal(body, &stored); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored.digest(), row.Hash) {
		t.Errorf("%q does not have its hash", stored.EntityID)
	}
}

func TestU7_the_audit_log_finds_an_entity_by_either_form_of_its_id(t *testing.T) {
	t.Parallel()
	const entity = "0190f0c2-1111-7aaa-8bbb-0123456789ab"
	for _, stored := range []string{entity, "{fp:7}:" + entity} {
		row := AuditRow{Entity: "execution", EntityID: stored}
		for _, asked := range []string{entity, "{fp:7}:" + entity} {
			if !(&AuditFilter{EntityID: asked}).Matches(&row) {
				t.Errorf("%s does not find %s", asked, stored)
			}
		}
		if (&AuditFilter{EntityID: base.UUID{1}.String()}).Matches(&row) {
			t.Errorf("another id finds %s", stored)
		}
	}
}
