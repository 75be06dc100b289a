package server

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU87_time_left_is_told_in_words(t *testing.T) {
	t.Parallel()
	for span, want := range map[time.Duration]string{
		-time.Hour: "less than a minute", 59 * time.Second: "less than a minute", time.Minute: "1 minute", 119 * time.Second: "1 minute",
		time.Hour: "1 hour", 61 * time.Minute: "1 hour and 1 minute", 25*time.Hour + 59*time.Minute: "1 day and 1 hour", 24*time.Hour + 5*time.Minute: "1 day",
		90 * 24 * time.Hour: "90 days",
	} {
		if got := spanInWords(span); got != want {
			t.Errorf("%s is %q, want %q", span, got, want)
		}
	}
}

func TestU87_the_page_says_what_is_counted(t *testing.T) {
	t.Parallel()
	choices := []flowfabric.LinkChoice{{ID: "ship", Label: "Ship it", SignalName: "shipped"}, {ID: "reject", Label: "No", SignalName: "rejected"}}
	for counted, want := range map[string]string{
		"approved": "1 of 2 have approved.", "rejected": "1 of 2 have rejected.", "shipped": "1 of 2 have chosen “Ship it”.",
		"seen": "1 of 2 have sent “seen”.", "": "1 of 2 have answered.",
	} {
		page := &api.LinkPage{ApprovalLink: flowfabric.ApprovalLink{Choices: choices}, Needed: 2, Progress: 1, Counted: counted}
		if got := progressOf(page); got != want {
			t.Errorf("%q is %q, want %q", counted, got, want)
		}
	}
	if got := progressOf(&api.LinkPage{Counted: "approved"}); got != "" {
		t.Errorf("nothing is counted: %q", got)
	}
}

func TestW73_every_way_in_which_a_wait_ends_is_told_in_words(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"resumed": "The work continued", "timed_out": "ran out", "expired": "ran out", "closed": "taken back", "denied": "denied", "ended": "ended", "a word of later": "ended",
	} {
		refused := &flowfabric.Error{Code: "waitpoint_closed", Current: map[string]any{"close_reason": reason, "closed_at": "2026-03-05T14:05:06.000Z"}}
		page, status := pageOfLink(&api.LinkPage{Refused: refused}, typed{})
		text, err := page.render()
		if err != nil || status != http.StatusGone || !strings.Contains(string(text), want) || !strings.Contains(string(text), "on 5 March 2026 at 14:05 UTC") {
			t.Errorf("%s: %d %s %v", reason, status, text, err)
		}
	}
	text := endingOf(&flowfabric.Error{Code: "waitpoint_expired"})
	if !strings.Contains(text, "ran out.") {
		t.Error(text)
	}
}

func TestW70_the_policy_names_the_one_style_of_the_page(t *testing.T) {
	t.Parallel()
	text, err := brokenPage(&wire.Problem{Status: http.StatusNotFound}).render()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<style>")
	style, rest, found := strings.Cut(rest, "</style>")
	digest := sha256.Sum256([]byte(style))
	if !found || strings.Contains(rest, "style=") || !strings.Contains(approvePolicy, "'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'") {
		t.Errorf("%s does not allow the style of the page", approvePolicy)
	}
}

func TestU87_a_server_that_cannot_answer_does_not_say_that_nothing_was_decided(t *testing.T) {
	t.Parallel()
	page, status := pageOfLink(&api.LinkPage{}, typed{comment: "typed", refusal: &wire.Problem{Code: "timeout", Status: 504}})
	text, err := page.render()
	if err != nil || status != 504 || !strings.Contains(string(text), "may not have been recorded") || !strings.Contains(string(text), "typed</textarea>") {
		t.Errorf("%d %s %v", status, text, err)
	}
	text, err = brokenPage(&wire.Problem{Code: "store_unavailable", Status: 503, RequestID: "r-1"}).render()
	if err != nil || !strings.Contains(string(text), "cannot answer now") || !strings.Contains(string(text), "r-1") {
		t.Errorf("%s %v", text, err)
	}
}

func TestU86_who_would_rather_have_json_gets_it(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false, "application/json": true,
		"application/json, application/problem+json, */*;q=0.1": true, "application/*": true, "text/html;q=0.5, application/json;q=0.4": false,
		"application/json;q=0": false, "nonsense": false, "text/html, application/json": false, "text/*;q=0.3, */*;q=0.9": true,
	} {
		r := &http.Request{Header: http.Header{}}
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		if got := prefersJSON(r); got != want {
			t.Errorf("%q: %t", accept, got)
		}
	}
}
