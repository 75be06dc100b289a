package flowfabric

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU9_what_is_told_of_waits_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[Condition, wire.ResumeCondition](t, "Condition", nil)
	roundTrip[Binding, wire.Binding](t, "Binding", func(_ *rapid.T, b *Binding) {
		if b.Pending {
			b.Key = "" // the waitpoint has its own
		}
	})
	roundTrip[Waitpoint, wire.Waitpoint](t, "Waitpoint", func(_ *rapid.T, w *Waitpoint) { w.CallbackURL = "" })
	roundTrip[SignalRecord, wire.Signal](t, "SignalRecord", nil)
	roundTrip[SuspensionRecord, wire.Suspension](t, "SuspensionRecord", func(_ *rapid.T, s *SuspensionRecord) {
		s.Signals = append([]SignalRecord{}, s.Signals...)
		for i := range s.Waitpoints {
			s.Waitpoints[i].Pending = false
		}
	})
	roundTrip[Resume, wire.Resumed](t, "Resume", func(_ *rapid.T, r *Resume) { r.Signals = append([]SignalRecord{}, r.Signals...) })
	roundTrip[SignalReceipt, wire.SignalReceipt](t, "SignalReceipt", func(t *rapid.T, r *SignalReceipt) {
		if r.Outcome = rapid.SampledFrom([]string{outcomeAccepted, outcomeDuplicate}).Draw(t, "outcome"); r.Outcome == outcomeAccepted {
			r.SameRequest = false
		}
	})
	roundTrip[CloseResult, wire.ClosedWaitpoint](t, "CloseResult", nil)
	roundTrip[ApprovalLink, wire.Link](t, "ApprovalLink", func(_ *rapid.T, l *ApprovalLink) { l.URL = "" })
	roundTrip[NodeProgress, wire.NodeProgress](t, "NodeProgress", nil)
	roundTrip[PersonalDecision, wire.PersonalDecision](t, "PersonalDecision", nil)
	roundTrip[Suspended, wire.Suspended](t, "Suspended", func(t *rapid.T, s *Suspended) {
		s.Waitpoints, s.Links = append([]Waitpoint{}, s.Waitpoints...), append([]ApprovalLink{}, s.Links...)
		s.Decisions = append([]PersonalDecision{}, s.Decisions...)
		for i := range s.Waitpoints {
			s.Waitpoints[i].CallbackURL = ""
		}
		for i := range s.Links {
			s.Links[i].URL = ""
		}
		if s.Execution != nil {
			settle(t, s.Execution)
		}
	})
}

func TestW29_the_json_of_a_waitpoint_and_of_a_link_shows_neither_token_nor_address(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("5e", 32)
	waitpoint := Waitpoint{ID: "w", Token: TokenOf("k1:" + secret), CallbackURL: "/v1/callbacks/w/k1:" + secret}
	link := ApprovalLink{ID: "l", URL: "/approve/l/k1:" + secret}
	for _, value := range []any{
		waitpoint, &waitpoint,
		[]Waitpoint{waitpoint},
		link,
		Suspended{Waitpoints: []Waitpoint{waitpoint}, Links: []ApprovalLink{link}},
		WorkAnswer{Waitpoints: []Waitpoint{waitpoint}},
		Page[Waitpoint]{Items: []Waitpoint{waitpoint}},
	} {
		if text := string(must(wire.Marshal(value))); strings.Contains(text, secret[:4]) || strings.Contains(text, "callback") || strings.Contains(text, "url") {
			t.Errorf("%T shows %s", value, text)
		}
	}
}

func TestU30_a_token_is_read_where_an_answer_has_it(t *testing.T) {
	t.Parallel()
	text := must(wire.Marshal(wire.IssuedWaitpoint{Waitpoint: wire.Waitpoint{WaitpointID: "w"}, Token: "k1:ab", CallbackURL: "https://x/v1/callbacks/w/k1:ab"}))
	var read Waitpoint
	if err := wire.Unmarshal(text, &read); err != nil || read.Token.Reveal() != "k1:ab" || read.CallbackURL != "https://x/v1/callbacks/w/k1:ab" {
		t.Errorf("%+v %v", read, err)
	}
	var link ApprovalLink
	text = must(wire.Marshal(wire.IssuedLink{Link: wire.Link{LinkID: "l"}, URL: "https://x/approve/l/k1:ab"}))
	if err := wire.Unmarshal(text, &link); err != nil || link.URL != "https://x/approve/l/k1:ab" {
		t.Errorf("%+v %v", link, err)
	}
}

func TestW46_an_empty_name_or_key_in_json_reaches_the_rules(t *testing.T) {
	t.Parallel()
	var c Condition
	if err := wire.Unmarshal([]byte(`{"type":"single","waitpoint_key":"","name":""}`), &c); err != nil {
		t.Fatal(err)
	}
	if node := c.core(); !node.Matcher.Named || len(node.Waitpoints) != 1 {
		t.Errorf("%+v", node)
	}
	if node := (Condition{Type: "single"}).core(); node.Matcher.Named || len(node.Waitpoints) != 0 {
		t.Errorf("%+v", node)
	}
}
