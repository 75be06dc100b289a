package core

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// sampleRecords has one record of each kind with every field that is stored.
func sampleRecords() []WaitRecord {
	id, execution := base.UUID{1}, base.IDOf(base.UUID{2})
	return []WaitRecord{
		&Waitpoint{
			ID: id, ExecutionID: execution, Namespace: "acme", Key: "a", RunIndex: 1, SuspensionID: base.UUID{3}, RequiredNames: []string{"go"},
			MintedAt: 5, TokenKid: "k1", TokenFingerprint: "0123456789abcdef", CreatedAt: 4, ActivatedAt: 6, ExpiresAt: 7,
			IdempotencyKey: "k", Fingerprint: []byte{1},
		},
		&WaitpointEnd{WaitpointID: id, Reason: ClosedTimedOut, At: 5},
		&Suspension{
			Seq: 3, ID: id, RunIndex: 1, AttemptIndex: 2, Waitpoints: []BoundWaitpoint{{id, "a"}}, Condition: []byte(singleA), Fingerprint: []byte{2},
			IdempotencyKey: "k", Fence: Fence{base.UUID{4}, 5, base.UUID{6}}, ReasonCode: "manual_pause", TimeoutAt: 9, Behavior: BehaviorFail,
			ResumeDelay: 4, Continuation: &Payload{ContentType: "text/plain", Size: 3}, At: 8, Early: true, Late: true,
		},
		&SuspensionEnd{Seq: 3, Cause: CauseSignal, Resumed: true, At: 5, CloserSignalID: base.UUID{7}, By: "ann", EscalatedAt: 4},
		&Signal{
			Ordinal: 1, ID: id, WaitpointID: base.UUID{8}, WaitpointKey: "a", SuspensionID: base.UUID{9}, Name: "go", Category: "c", SourceType: "t",
			SourceIdentity: "i", SourceVerified: true, CorrelationID: "r", IdempotencyKey: "k", SentAt: 3, AcceptedAt: 4, Matched: true,
			Effect: condition.EffectAppended, TokenKid: "k1", TokenFingerprint: "f", Principal: "ann", Payload: Payload{ContentType: "text/plain", Size: 9}, Digest: []byte{1},
		},
		&Link{
			ID: id, WaitpointID: base.UUID{8}, ExecutionID: execution, Namespace: "acme", Approver: "ann", Decisions: DefaultDecisions(),
			ExpiresAt: 9, Title: "t", Message: "m", CommentRequired: true, CreatedAt: 4,
		},
		&LinkEnd{LinkID: id, Decision: "approve", Comment: "c", SignalID: base.UUID{7}, At: 5},
		&LinkEnd{LinkID: id, Revoked: true, At: 5, By: "ann"},
	}
}

func TestW10_every_record_is_read_as_it_was_written_and_later_fields_are_passed_over(t *testing.T) {
	t.Parallel()
	for _, record := range sampleRecords() {
		text := record.Encode()
		again, err := decodeText(record, text)
		if err != nil || !bytes.Equal(again.Encode(), text) {
			t.Errorf("%T: %s is read as %s: %v", record, text, again.Encode(), err)
		}
		later := append(bytes.TrimSuffix(bytes.Clone(text), []byte("}")), `,"of_a_later_version":{"x":[1]}}`...)
		if again, err = decodeText(record, later); err != nil || !bytes.Equal(again.Encode(), text) {
			t.Errorf("%T: %s: %v", record, later, err)
		}
	}
}

func TestW10_what_cannot_be_a_record_is_corruption(t *testing.T) {
	t.Parallel()
	for _, record := range sampleRecords() {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(record.Encode(), &fields); err != nil {
			t.Fatal(err)
		}
		texts := [][]byte{nil, []byte("null"), []byte("[]"), []byte("{}"), []byte(`"x"`), record.Encode()[1:]}
		for _, required := range []string{"waitpoint_id", "close_reason", "seq", "suspension_id", "condition", "cause", "ordinal", "signal_id", "link_id", "decisions"} {
			if _, has := fields[required]; !has || isOptional(record, required) {
				continue
			}
			without := map[string]json.RawMessage{}
			for name, value := range fields {
				if name != required {
					without[name] = value
				}
			}
			text, _ := json.Marshal(without)
			texts = append(texts, text)
		}
		for _, text := range texts {
			if _, err := decodeText(record, text); base.CodeOf(err) != base.CodeCorruption {
				t.Errorf("%T: %s is taken: %v", record, text, err)
			}
		}
	}
}

// isOptional tells of the fields above that are required of another kind only.
func isOptional(record WaitRecord, field string) bool {
	switch record.(type) {
	case *Waitpoint:
		return field == "suspension_id"
	case *Signal:
		return field == "suspension_id" || field == "waitpoint_id"
	case *LinkEnd:
		return field == "signal_id"
	default:
		return false
	}
}

func fuzzRecord(f *testing.F, kinds ...WaitRecord) {
	for _, record := range kinds {
		f.Add(record.Encode())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := decodeText(kinds[0], text)
		if err != nil {
			if base.CodeOf(err) != base.CodeCorruption {
				t.Fatalf("%v is no corruption", err)
			}
			return
		}
		written := once.Encode()
		twice, err := decodeText(kinds[0], written)
		if err != nil || !bytes.Equal(twice.Encode(), written) {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
	})
}

func FuzzDecodeWaitpoint(f *testing.F)     { fuzzRecord(f, sampleRecords()[0]) }
func FuzzDecodeWaitpointEnd(f *testing.F)  { fuzzRecord(f, sampleRecords()[1]) }
func FuzzDecodeSuspension(f *testing.F)    { fuzzRecord(f, sampleRecords()[2]) }
func FuzzDecodeSuspensionEnd(f *testing.F) { fuzzRecord(f, sampleRecords()[3]) }
func FuzzDecodeSignal(f *testing.F)        { fuzzRecord(f, sampleRecords()[4]) }
func FuzzDecodeLink(f *testing.F)          { fuzzRecord(f, sampleRecords()[5]) }
func FuzzDecodeLinkEnd(f *testing.F)       { fuzzRecord(f, sampleRecords()[6], sampleRecords()[7]) }

func TestW54_every_cause_and_every_reason_of_the_rules_can_be_read(t *testing.T) {
	t.Parallel()
	for _, cause := range []SuspensionCause{"signal", "operator", "timeout", "early_signals", "budget_approved", "budget_denied", "cancelled", "ended"} {
		end := SuspensionEnd{Seq: 1, Cause: cause}
		if read, err := DecodeSuspensionEnd(end.Encode()); err != nil || read.Cause != cause {
			t.Errorf("%s: %+v, %v", cause, read, err)
		}
	}
	for _, reason := range []CloseReason{"closed", "expired", "resumed", "timed_out", "denied", "ended"} {
		end := WaitpointEnd{WaitpointID: base.UUID{1}, Reason: reason}
		if read, err := DecodeWaitpointEnd(end.Encode()); err != nil || read.Reason != reason {
			t.Errorf("%s: %+v, %v", reason, read, err)
		}
	}
	_, err := DecodeSuspensionEnd((&SuspensionEnd{Seq: 1, Cause: "whim"}).Encode())
	wantCode(t, err, base.CodeCorruption)
	_, err = DecodeWaitpointEnd((&WaitpointEnd{WaitpointID: base.UUID{1}, Reason: "whim"}).Encode())
	wantCode(t, err, base.CodeCorruption)
}
