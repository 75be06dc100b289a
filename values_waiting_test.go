package flowfabric

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU9_what_is_told_of_waits_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[Condition, Condition](t, "Condition", nil)
	roundTrip[Binding, Binding](t, "Binding", func(_ *rapid.T, b *Binding) {
		if b.UsePending != nil {
			b.Fresh = nil
		} else if b.Fresh == nil {
			b.Fresh = &api.FreshWaitpoint{} // which JSON says
		}
	})
	roundTrip[Waitpoint, Waitpoint](t, "Waitpoint", func(_ *rapid.T, w *Waitpoint) { w.CallbackURL = "" })
	roundTrip[SignalRecord, SignalRecord](t, "SignalRecord", nil)
	roundTrip[api.SuspensionRecord, api.SuspensionRecord](t, "SuspensionRecord", nil)
	roundTrip[Resume, Resume](t, "Resume", nil)
	roundTrip[api.SignalReceipt, api.SignalReceipt](t, "SignalReceipt", func(t *rapid.T, r *api.SignalReceipt) {
		if r.Outcome = rapid.SampledFrom([]string{api.SignalAccepted, api.SignalDuplicate}).Draw(t, "outcome"); r.Outcome == api.SignalAccepted {
			r.SameRequest = false
		}
	})
	roundTrip[api.CloseResult, api.CloseResult](t, "CloseResult", nil)
	roundTrip[ApprovalLink, ApprovalLink](t, "ApprovalLink", func(_ *rapid.T, l *ApprovalLink) { l.URL = "" })
	roundTrip[api.LinkPage, api.LinkPage](t, "LinkPage", func(_ *rapid.T, p *api.LinkPage) {
		p.URL, p.Refused = "", nil
		if p.Needed <= 0 {
			p.Progress = 0 // nothing counts
		}
	})
	roundTrip[api.LinkDecision, api.LinkDecision](t, "LinkDecision", nil)
	roundTrip[api.LinkOutcome, api.LinkOutcome](t, "LinkOutcome", nil)
	roundTrip[api.NodeProgress, api.NodeProgress](t, "NodeProgress", nil)
	roundTrip[api.PersonalDecision, api.PersonalDecision](t, "PersonalDecision", nil)
	roundTrip[api.Suspended, api.Suspended](t, "Suspended", func(t *rapid.T, s *api.Suspended) {
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
		api.Suspended{Waitpoints: []Waitpoint{waitpoint}, Links: []ApprovalLink{link}},
		api.WorkAnswer{Waitpoints: []Waitpoint{waitpoint}},
		Page[Waitpoint]{Items: []Waitpoint{waitpoint}},
	} {
		if text := string(must(wire.Marshal(value))); strings.Contains(text, secret[:4]) || strings.Contains(text, "callback") || strings.Contains(text, "url") {
			t.Errorf("%T shows %s", value, text)
		}
	}
}

func TestU30_a_token_is_read_where_an_answer_has_it(t *testing.T) {
	t.Parallel()
	text := must(wire.Marshal(api.IssuedWaitpoint{Waitpoint: Waitpoint{ID: "w"}, Token: "k1:ab", CallbackURL: "https://x/v1/callbacks/w/k1:ab"}))
	var read Waitpoint
	if err := json.Unmarshal(text, &read); err != nil || read.Token.Reveal() != "k1:ab" || read.CallbackURL != "https://x/v1/callbacks/w/k1:ab" {
		t.Errorf("%+v %v", read, err)
	}
	var link ApprovalLink
	text = must(wire.Marshal(api.IssuedLink{ApprovalLink: ApprovalLink{ID: "l"}, URL: "https://x/approve/l/k1:ab"}))
	if err := json.Unmarshal(text, &link); err != nil || link.URL != "https://x/approve/l/k1:ab" {
		t.Errorf("%+v %v", link, err)
	}
}

func TestW46_an_empty_name_or_key_in_json_reaches_the_rules(t *testing.T) {
	t.Parallel()
	var c Condition
	const text = `{"type":"single","waitpoint_key":"","name":""}`
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	var b Binding
	const fresh = `{"fresh":{"waitpoint_key":""}}`
	if err := json.Unmarshal([]byte(fresh), &b); err != nil || b.Fresh.Given() == nil || string(must(wire.Marshal(b))) != fresh {
		t.Errorf("%+v %v", b.Fresh, err)
	}
	if NewWaitpoint("").Fresh.Given() != nil {
		t.Error("Go gave an empty key")
	}
	if all := AnyOf(c); string(must(wire.Marshal(all))) != `{"type":"any_of","members":[`+text+`]}` {
		t.Errorf("%s", must(wire.Marshal(all)))
	}
	if node := service.CoreCondition(c); !node.Matcher.Named || len(node.Waitpoints) != 1 {
		t.Errorf("%+v", node)
	}
	if node := service.CoreCondition(Condition{Type: "single"}); node.Matcher.Named || len(node.Waitpoints) != 0 {
		t.Errorf("%+v", node)
	}
}
