package model

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// firstKid is the signing key with which every case begins.
const firstKid = "k0"

// signing is the key set of the model.
type signing struct {
	set    keyring.KeySet
	purges []base.Time                   // when the sweep looks for secrets to erase (W17)
	tokens map[base.UUID][]keyring.Token // that were ever shown, by waitpoint or link
}

func newSigning(now base.Time) *signing {
	k := &signing{tokens: map[base.UUID][]keyring.Token{}}
	if _, err := k.set.Seed(&core.Effects{Now: now}, keyring.Sealing{}, seedOf(firstKid)); err != nil {
		panic(err)
	}
	return k
}

func (k *signing) ring() *keyring.Ring {
	ring, err := k.set.Open(keyring.MasterKey{})
	if err != nil {
		panic(err)
	}
	return ring
}

// show makes the token of a row under the active key, the zero token when there is none (W27).
func (k *signing) show(id base.UUID, f keyring.TokenFields) keyring.Token {
	token, err := k.ring().Mint(f)
	if err != nil {
		return keyring.Token{}
	}
	if known := k.tokens[id]; len(known) == 0 || known[len(known)-1].Reveal() != token.Reveal() {
		k.tokens[id] = append(known, token)
	}
	return token
}

// arm remembers when the sweep is to erase secrets.
func (k *signing) arm(before keyring.KeySet) {
	const minute = base.Time(base.Minute)
	known := map[base.Time]bool{}
	for i := range before.Keys {
		known[before.Keys[i].VerifyUntil] = true
	}
	for i := range k.set.Keys {
		if until := k.set.Keys[i].VerifyUntil; until != 0 && !known[until] {
			k.purges = append(k.purges, until/minute*minute+minute)
		}
	}
}

func (k *signing) sweep(now base.Time) {
	due := func(at base.Time) bool { return at <= now }
	if slices.ContainsFunc(k.purges, due) {
		k.set.Purge(&core.Effects{Now: now})
		k.purges = slices.DeleteFunc(k.purges, due)
	}
}

// issued is a waitpoint with its token, or a link with its.
type issued struct {
	Row, Token string
	Repeated   bool
}

// suspended is the answer to a suspend.
type suspended struct {
	Satisfied      bool
	ID             base.UUID
	Rows, Tokens   []string
	TimeoutAt      base.Time
	Cause          core.SuspensionCause
	Signals        []string
	Late, Repeated bool
}

func suspendedOf(a core.SuspendAnswer, token func(i int) keyring.Token) suspended {
	s := suspended{Satisfied: a.Satisfied, ID: a.SuspensionID, TimeoutAt: a.TimeoutAt, Cause: a.Cause, Late: a.Late, Repeated: a.Repeated}
	for i := range a.Waitpoints {
		s.Rows = append(s.Rows, string(a.Waitpoints[i].Encode()))
		s.Tokens = append(s.Tokens, token(i).Reveal())
	}
	for i := range a.Signals {
		s.Signals = append(s.Signals, signalLine(&a.Signals[i]))
	}
	return s
}

func signalLine(s *core.Signal) string { return fmt.Sprintf("%s %q", s.Encode(), s.Payload.Data) }

// observed is a suspension as it is shown, "" for none.
func observed(o *core.Observation) string {
	if o == nil {
		return ""
	}
	text := fmt.Sprintf("%s cause %s at %s by %q closer %s escalated %s", o.Encode(), o.Cause, o.ClosedAt, o.By, o.CloserSignalID, o.EscalatedAt)
	if p := o.Continuation; p != nil {
		text += fmt.Sprintf(" continuation %s %q", p.ContentType, p.Data)
	}
	for i := range o.Signals {
		text += "\n" + signalLine(&o.Signals[i])
	}
	return text
}

// dossierLines writes every record of a dossier, so that two can be compared.
func dossierLines(d *core.Dossier) []string {
	var all []string
	for i := range d.Waitpoints {
		all = append(all, "waitpoint "+string(d.Waitpoints[i].Encode()))
	}
	for i := range d.WaitpointEnds {
		all = append(all, "waitpoint end "+string(d.WaitpointEnds[i].Encode()))
	}
	for i := range d.Suspensions {
		s := &d.Suspensions[i]
		line := "suspension " + string(s.Encode())
		if s.Continuation != nil {
			line += fmt.Sprintf(" %q", s.Continuation.Data)
		}
		all = append(all, line)
	}
	for i := range d.SuspensionEnds {
		all = append(all, "suspension end "+string(d.SuspensionEnds[i].Encode()))
	}
	for i := range d.Signals {
		all = append(all, "signal "+signalLine(&d.Signals[i]))
	}
	for i := range d.Links {
		all = append(all, "link "+string(d.Links[i].Encode()))
	}
	for i := range d.LinkEnds {
		all = append(all, "link end "+string(d.LinkEnds[i].Encode()))
	}
	slices.Sort(all)
	return all
}

// recordsIn counts what is in a dossier: everything is written once, but for waitpoints, of which events tell.
func recordsIn(d *core.Dossier) int {
	return len(d.Waitpoints) + len(d.WaitpointEnds) + len(d.Suspensions) + len(d.SuspensionEnds) + len(d.Signals) + len(d.Links) + len(d.LinkEnds)
}

func cloneDossier(d core.Dossier) core.Dossier {
	return core.Dossier{
		Waitpoints: slices.Clone(d.Waitpoints), WaitpointEnds: slices.Clone(d.WaitpointEnds), Suspensions: slices.Clone(d.Suspensions),
		SuspensionEnds: slices.Clone(d.SuspensionEnds), Signals: slices.Clone(d.Signals), Links: slices.Clone(d.Links), LinkEnds: slices.Clone(d.LinkEnds),
	}
}

// took is what a claim tells of one execution, with the wait that is over.
func (m *reference) took(r *record, got core.Acquired) taken {
	o, err := r.x.ResumedWait(&r.d, got)
	if err != nil {
		panic(err)
	}
	return takenOf(r.x, got, o)
}

// having finds the execution whose dossier has something.
func (m *reference) having(has func(d *core.Dossier) bool) *record {
	for _, id := range m.sorted() {
		if r := m.records[id]; has(&r.d) {
			return r
		}
	}
	return nil
}

func (m *reference) ofWaitpoint(id base.UUID) *record {
	return m.having(func(d *core.Dossier) bool { return d.Waitpoint(id) != nil })
}

func (m *reference) ofLink(id base.UUID) *record {
	return m.having(func(d *core.Dossier) bool { return d.Link(id) != nil })
}

func (m *reference) takenWaitpoint(id base.UUID) bool { return m.ofWaitpoint(id) != nil }

// operateAt is operate for what is named by the id of a waitpoint or a link.
func (m *reference) operateAt(c engine.Caller, r *record, missing base.Code, name string, o engine.Operator, args any, op func(r *record, fx *core.Effects) (any, error)) (any, error) {
	if r == nil || !sees(c, r.x.Class.Namespace) {
		return nil, base.Errorf(missing, "none, or none of the caller's")
	}
	return m.operate(c, name, r.x.ID.Given(), o, args, op)
}

// happen notes what the records of a command tell, so that a run in which something never happened can be found.
func (m *reference) happen(fx *core.Effects) {
	for _, write := range fx.Waits {
		switch w := write.Record.(type) {
		case *core.SuspensionEnd:
			m.happened = append(m.happened, "a wait ended by "+string(w.Cause))
		case *core.WaitpointEnd:
			m.happened = append(m.happened, "a waitpoint closed: "+string(w.Reason))
		case *core.Signal:
			m.happened = append(m.happened, "a signal: "+string(w.Effect))
		}
	}
}

// happenings must each be seen in a run: else it proves nothing about them.
var happenings = []string{
	"a wait ended by signal", "a wait ended by operator", "a wait ended by timeout", "a wait ended by early_signals",
	"a wait ended by cancelled", "a wait ended by ended",
	"a waitpoint closed: closed", "a waitpoint closed: expired", "a waitpoint closed: resumed", "a waitpoint closed: timed_out", "a waitpoint closed: ended",
	"a signal: buffered_for_pending_waitpoint", "a signal: resume_condition_satisfied", "a signal: appended_to_waitpoint",
	"a signal: signal_ignored_matcher_failed",
	"refused: invalid_token", "refused: waitpoint_closed", "refused: waitpoint_expired", "refused: signing_key_missing",
	"refused: idempotency_conflict", "refused: link_revoked", "refused: waitpoint_already_exists", "refused: execution_not_suspended",
}
