package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var (
	//go:embed approve.html
	approveText string
	//go:embed approve.css
	approveStyle string

	approvePages = template.Must(template.New("approve").Parse(approveText))
)

// approvePolicy permits the page of a link its own style and form, and nothing else (W70). It names the style by its digest.
var approvePolicy = func() string {
	digest := sha256.Sum256([]byte(approveStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// approvePage is the page of a link. It holds neither the token nor the address: its form posts to where it came from.
type approvePage struct {
	Tab      string // of the browser
	Approver string
	Title    string
	Notice   *notice
	Said     string // the comment of a decision
	Message  string
	Facts    []fact
	Form     *decisionForm
	Footer   string
}

// Style is the style of the page, exactly as approvePolicy has it.
func (approvePage) Style() template.CSS { return template.CSS(approveStyle) } //nolint:gosec // G203: the style is part of this program

// notice says what happened.
type notice struct {
	Tone  string // good, rest or bad: beside the words, never in place of them
	Alert bool   // read out at once
	What  string
	Lines []string
}

// fact is a piece of information for the person who decides.
type fact struct {
	Name, Text string
	Items      []string
	At         *instant
}

// instant is a moment for people and for machines.
type instant struct{ Machine, Words string }

// decisionForm is what can be decided.
type decisionForm struct {
	Required bool // the comment
	Comment  string
	Wrong    string // with the comment
	Choices  []choice
}

type choice struct {
	ID, Label string
	First     bool // it is emphasized
}

// typed is the content of a form that was refused, and the reason.
type typed struct {
	comment string
	refusal *wire.Problem
}

const (
	pageFooter = "FlowFabric holds the work until it is decided. Anyone who has this link can decide: do not pass it on."
	deadFooter = "FlowFabric"
)

// pageOfLink is the page of a link that was opened with its token.
func pageOfLink(p *api.LinkPage, t typed) (approvePage, int) {
	page := approvePage{Title: cmp.Or(p.Title, "Your decision is needed"), Approver: p.Approver, Message: p.Message, Footer: pageFooter}
	page.Tab = page.Title
	status := http.StatusOK
	switch {
	case p.State == linkDecided:
		page.Notice, page.Said = decidedNotice(p), p.Comment
		page.Tab, page.Footer = "Decided: "+page.Title, deadFooter
		page.Facts = workFacts(p)
	case p.Refused != nil:
		page.Notice = goneNotice(p.Refused)
		page.Tab, page.Footer = page.Notice.What+": "+page.Title, deadFooter
		page.Facts, status = workFacts(p), http.StatusGone
	default:
		page.Facts = append(workFacts(p), timeLeft(p)...)
		page.Form = formOf(p, t)
		if t.refusal != nil {
			status = t.refusal.Status
			page.Tab = "Not recorded: " + page.Title
			page.Notice = refusedNotice(t.refusal, page.Form)
		}
	}
	return page, status
}

const linkDecided = "decided"

// decidedNotice describes who decided what, and when (W72).
func decidedNotice(p *api.LinkPage) *notice {
	label := p.Decision
	if i := slices.IndexFunc(p.Choices, func(c api.LinkChoice) bool { return c.ID == p.Decision }); i >= 0 {
		label = p.Choices[i].Label
	}
	n := &notice{Tone: "good", What: "Decided: " + label}
	n.Lines = append(n.Lines, fmt.Sprintf("%s chose “%s” on %s.", p.Approver, label, inWords(p.DecidedAt)))
	if text := progressOf(p); text != "" {
		n.Lines = append(n.Lines, text)
	}
	n.Lines = append(n.Lines, "This is recorded and cannot be changed here. You can close this page.")
	return n
}

// goneNotice describes why the question can no longer be decided (W73).
func goneNotice(refused error) *notice {
	switch code := api.CodeOf(refused); code {
	case "link_expired":
		return &notice{Tone: "rest", What: "This link has expired", Lines: []string{
			"Its time ended" + momentOf(refused, "expires_at") + ", and nothing was decided with it.", "If a decision is still needed, ask the sender for a new link.",
		}}
	case "link_revoked":
		return &notice{Tone: "rest", What: "This link was withdrawn", Lines: []string{
			"The sender took it back" + momentOf(refused, "revoked_at") + ". Nothing was decided with it.", "You do not have to do anything.",
		}}
	default:
		return &notice{Tone: "rest", What: "This decision is no longer needed", Lines: []string{endingOf(refused), "You do not have to do anything."}}
	}
}

// endings are the descriptions of how a waitpoint closed, for the person asked.
var endings = map[string]string{
	"resumed":   "The work continued%s: others had decided, or an operator let it go on.",
	"timed_out": "The time in which it could be decided ran out%s.",
	"expired":   "The time in which it could be decided ran out%s.",
	"closed":    "The question was taken back%s.",
	"denied":    "It was denied%s by somebody else.",
	"ended":     "The work that waited for it ended%s.",
}

// endingOf says how the waitpoint of a link ended.
func endingOf(refused error) string {
	reason, _ := current(refused, "close_reason").(string)
	if api.CodeOf(refused) == "waitpoint_expired" {
		reason = "expired"
	}
	return fmt.Sprintf(cmp.Or(endings[reason], endings["ended"]), momentOf(refused, "closed_at"))
}

// current returns a detail of a refusal; nil if it is absent.
func current(refused error, name string) any {
	var e *api.Error
	if !errors.As(refused, &e) {
		return nil
	}
	return e.Current[name]
}

// momentOf returns " on ..." with the time under a name in the details of a refusal; "" if it is absent.
func momentOf(refused error, name string) string {
	text, _ := current(refused, name).(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return " on " + inWords(at)
}

// refusedNotice describes why a decision was not recorded; an error of the comment is shown next to the comment as well.
func refusedNotice(p *wire.Problem, form *decisionForm) *notice {
	n := &notice{Tone: "bad", Alert: true, What: "Nothing was decided yet"}
	switch {
	case p.Code == "invalid_decision" && strings.HasSuffix(p.Field, "comment"):
		form.Wrong = "Write a comment: it is required here."
		if form.Comment != "" {
			form.Wrong = "Shorten the comment: at most 4096 characters, of which some count as two or more."
		}
		n.Lines = []string{form.Wrong}
	case p.Code == "invalid_decision":
		n.Lines = []string{"Choose one of the buttons below."}
	case p.Code == "signal_limit_exceeded":
		n.Lines = []string{"The work takes no more answers. Tell the sender of the link."}
	case p.Status >= http.StatusInternalServerError:
		n.What = "Your decision may not have been recorded"
		n.Lines = []string{"The server could not answer. Try again: a decision counts once, however often it is sent."}
	default:
		n.Lines = []string{p.Detail}
	}
	return n
}

// brokenPage is the page without a link: one for whatever does not open anything (W69), or one for a server that cannot answer.
func brokenPage(p *wire.Problem) approvePage {
	page := approvePage{Footer: deadFooter}
	switch {
	case p.Code == "rate_limited":
		page.Title = "Too many wrong links"
		page.Message = "Links that do not work were opened too often from your network. Wait a minute, then open yours again."
	case p.Status >= http.StatusInternalServerError:
		page.Title = "The server cannot answer now"
		page.Message = "Open the link again in a moment: it shows whether something was decided.\n\nRequest " + p.RequestID
	case p.Status == http.StatusNotFound:
		page.Title = "This link does not work"
		page.Message = "It may be incomplete, or another link has replaced it. Open it from the message that it came in, or copy the whole address. If that does not help, ask the sender for a new one."
	default:
		page.Title, page.Message = "This request cannot be understood", p.Detail
	}
	page.Tab = page.Title
	return page
}

// workFacts are the facts about the work.
func workFacts(p *api.LinkPage) []fact {
	var all []fact
	if p.Asker != "" {
		all = append(all, fact{Name: "Asked by", Text: p.Asker})
	}
	all = append(all, fact{Name: "Work", Text: p.Kind})
	if len(p.Tags) > 0 {
		var items []string
		for _, name := range slices.Sorted(maps.Keys(p.Tags)) {
			items = append(items, name+": "+p.Tags[name])
		}
		all = append(all, fact{Name: "Tags", Items: items})
	}
	return all
}

// timeLeft says how far the decision is and how long it can be made.
func timeLeft(p *api.LinkPage) []fact {
	var all []fact
	if text := progressOf(p); text != "" {
		all = append(all, fact{Name: "So far", Text: text})
	}
	until := p.ExpiresAt
	if !p.TimeoutAt.IsZero() && p.TimeoutAt.Before(until) {
		until = p.TimeoutAt
	}
	return append(all, fact{Name: "Time left", Text: spanInWords(until.Sub(p.Now)), At: &instant{until.UTC().Format(time.RFC3339), inWords(until)}})
}

// progressOf returns "1 of 2 have approved"; "" if approvals are not counted.
func progressOf(p *api.LinkPage) string {
	if p.Needed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d have %s.", min(p.Progress, p.Needed), p.Needed, countedInWords(p))
}

// countedInWords says what those have done who are counted: by the label of the choice that says it, where the link has one.
func countedInWords(p *api.LinkPage) string {
	switch p.Counted {
	case "":
		return "answered"
	case "approved", "rejected":
		return p.Counted
	}
	for _, c := range p.Choices {
		if c.SignalName == p.Counted {
			return "chosen “" + c.Label + "”"
		}
	}
	return "sent “" + p.Counted + "”"
}

// formOf is the form of a link that can be decided. What was typed is kept.
func formOf(p *api.LinkPage, t typed) *decisionForm {
	form := &decisionForm{Required: p.CommentRequired, Comment: t.comment}
	first := max(0, slices.IndexFunc(p.Choices, func(c api.LinkChoice) bool { return c.ID == "approve" }))
	for i, c := range p.Choices {
		form.Choices = append(form.Choices, choice{ID: c.ID, Label: c.Label, First: i == first})
	}
	return form
}

// inWords is a moment for people, who may be anywhere.
func inWords(at time.Time) string { return at.UTC().Format("2 January 2006 at 15:04 UTC") }

// spans are the divisions of time in which durations are written.
var spans = []struct {
	name string
	size time.Duration
}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}}

// spanInWords writes a duration in its two largest divisions.
func spanInWords(d time.Duration) string {
	for i, unit := range spans {
		if d < unit.size {
			continue
		}
		text := plural(d/unit.size, unit.name)
		if i+1 < len(spans) {
			if rest := d % unit.size / spans[i+1].size; rest > 0 {
				text += " and " + plural(rest, spans[i+1].name)
			}
		}
		return text
	}
	return "less than a minute"
}

func plural(n time.Duration, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// render makes the page.
func (p approvePage) render() ([]byte, error) {
	var text bytes.Buffer
	err := approvePages.ExecuteTemplate(&text, "approve", p)
	return text.Bytes(), err
}
