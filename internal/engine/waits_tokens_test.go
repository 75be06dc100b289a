package engine_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// spoilt is a token with another last digit.
func spoilt(token keyring.Token) keyring.Token {
	text := []byte(token.Reveal())
	last := len(text) - 1
	text[last] = "0123456789abcdef"[(strings.IndexByte("0123456789abcdef", text[last])+1)%16]
	return keyring.TokenOf(string(text))
}

func TestW33_WI5_every_token_that_is_not_good_gets_the_same_answer_and_leaves_nothing(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		other, o := w.asleep(atA)
		task := w.started(core.Submission{})
		waiting := w.pending(task, "a")
		over, ended := w.asleep(atA)
		w.cancel(over)
		good, foreign := s.Tokens[0], o.Tokens[0]
		unknown := keyring.TokenOf("missing" + strings.TrimPrefix(good.Reveal(), "a"))
		events := len(w.events(engine.EventFilter{}))
		tries := map[string]func() error{
			"mismatch":       func() error { _, err := w.signal(s.Waitpoints[0].ID, spoilt(good), "go"); return err },
			"of another":     func() error { _, err := w.signal(s.Waitpoints[0].ID, foreign, "go"); return err },
			"shape":          func() error { _, err := w.signal(s.Waitpoints[0].ID, keyring.TokenOf("nonsense"), "go"); return err },
			"unknown kid":    func() error { _, err := w.signal(s.Waitpoints[0].ID, unknown, "go"); return err },
			"unknown target": func() error { _, err := w.signal(base.UUID{5}, good, "go"); return err },
			"pending":        func() error { _, err := w.signal(waiting.ID, good, "go"); return err },
			"terminal":       func() error { _, err := w.signal(ended.Waitpoints[0].ID, good, "go"); return err },
			"bad arguments":  func() error { _, err := w.signal(s.Waitpoints[0].ID, spoilt(good), ""); return err },
			"wrong execution": func() error {
				_, err := w.e.Signal(w.ctx(), stranger, &other, good, core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go"})
				return err
			},
		}
		var answer *base.Error
		for what, try := range tries {
			got := refused(t, try(), base.CodeInvalidToken)
			if answer == nil {
				answer = got
			}
			same(t, what, []any{got.Message, got.Field, got.Hint, got.Details}, []any{answer.Message, answer.Field, answer.Hint, answer.Details})
			if strings.Contains(got.Error(), strings.TrimPrefix(good.Reveal(), "a:")) {
				t.Fatal("the answer tells the token")
			}
		}
		_, err := w.signal(s.Waitpoints[0].ID, keyring.Token{}, "go")
		refused(t, err, base.CodeMissingToken)
		same(t, "events", len(w.events(engine.EventFilter{})), events)
		w.is(id, core.Suspended, core.WaitingForSignal)
		for cause, n := range map[string]float64{"shape": 1, "unknown_kid": 1, "unknown_target": 1, "mismatch": 5, "wrong_execution": 1} {
			same(t, "W34: "+cause, metered(t, w.e, metrics.TokensRefused.Name, cause), n)
		}
		must(w.e.Signal(w.ctx(), stranger, &id, good, core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go"}))(t)
	})
}

func TestW2_W34_a_wrong_token_does_not_even_let_timers_act(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		must(w.seedKey("a", 1))(t)
		id, s := w.asleep(atA, timingOut(1000, core.BehaviorCancel))
		w.turn(1000)
		events := len(w.events(engine.EventFilter{}))
		_, err := w.signal(s.Waitpoints[0].ID, spoilt(s.Tokens[0]), "go")
		refused(t, err, base.CodeInvalidToken)
		same(t, "nothing was told", len(w.events(engine.EventFilter{})), events)
		_, err = w.signal(s.Waitpoints[0].ID, s.Tokens[0], "go")
		same(t, "W77: the timeout was first", refused(t, err, base.CodeWaitpointClosed).Details["close_reason"], any("timed_out"))
		w.is(id, core.Cancelled, core.SuspensionTimeout)
	})
}

func TestW21_W27_WI2_tokens_follow_the_keys(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(`{"type":"operator_only"}`, func(c *core.SuspendCommand) { c.Waitpoints = []core.Binding{{Key: ptr("a")}} })
		at, old := s.Waitpoints[0].ID, s.Tokens[0]
		must(w.rotateKey("b", 2, 1000))(t)
		fresh := must(w.e.ReadToken(w.ctx(), operator, id, at))(t)
		kid, _ := fresh.Token.Split()
		same(t, "kid of a token that is read", kid, "b")
		same(t, "W28: what the row keeps", []string{fresh.TokenKid, fresh.TokenFingerprint}, []string{"a", old.Reveal()[2:18]})
		must(w.signal(at, old, "within grace"))(t)
		w.turn(1000)
		must(w.signal(at, old, "at its end"))(t)
		w.turn(1)
		_, err := w.signal(at, old, "after it")
		refused(t, err, base.CodeInvalidToken)
		same(t, "cause", metered(t, w.e, metrics.TokensRefused.Name, "expired_kid"), 1.0)
		must(w.signal(at, fresh.Token, "under the new key"))(t)

		must(w.revokeKey("b", true))(t)
		_, err = w.another1().Signal(w.ctx(), stranger, nil, fresh.Token, core.SignalCommand{WaitpointID: at, Name: "revoked"})
		refused(t, err, base.CodeInvalidToken)
		_, err = w.e.ReadToken(w.ctx(), operator, id, at)
		refused(t, err, base.CodeSigningKeyMissing)
		_, err = w.e.ReissueToken(w.ctx(), operator, at, engine.Operator{})
		refused(t, err, base.CodeSigningKeyMissing)
		same(t, "told once", w.count(id, "waitpoint.token_read"), 1)
	})
}

// another1 is another engine on the same store where there can be one, else this one.
func (w *world) another1() *engine.Engine {
	if w.url == "" {
		return w.e
	}
	return w.another()
}

func TestW22_without_a_key_nothing_is_signed_and_repeats_have_no_token(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task, other := w.started(core.Submission{}), w.started(core.Submission{})
		a := w.pending(task, "a")
		first := w.suspend(task, atA, adopting(a.ID))
		must(w.revokeKey("a", true))(t)
		again := must(w.e.Suspend(w.ctx(), client, given(task), waitFor(task, atA, adopting(a.ID))))(t)
		same(t, "W27: the answer without its token", []any{again.SuspensionID, again.Tokens[0].Reveal()}, []any{first.SuspensionID, ""})
		w.untouched(given(other), func() error {
			_, err := w.e.Suspend(w.ctx(), client, given(other), waitFor(other, atA))
			return err
		}, base.CodeSigningKeyMissing)
		_, err := w.e.CreateWaitpoint(w.ctx(), client, given(other), core.CreateWaitpointCommand{Fence: fence(other), Key: "a"})
		refused(t, err, base.CodeSigningKeyMissing)
		_, err = w.e.CreateLink(w.ctx(), operator, core.CreateLinkCommand{WaitpointID: a.ID, Approver: "ann"}, engine.Operator{})
		refused(t, err, base.CodeSigningKeyMissing)
		must(w.e.Suspend(w.ctx(), client, given(other), waitFor(other, operatorOnly)))(t) // needs no signature
	})
}

func TestW31_W32_operators_read_and_reissue_tokens_and_the_audit_log_tells(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		other := w.submit(core.Submission{})
		at := s.Waitpoints[0].ID
		before := w.get(id)
		shown := must(w.e.ReadToken(w.ctx(), operator, id, at))(t)
		same(t, "the token", shown.Token.Reveal(), s.Tokens[0].Reveal())
		same(t, "WI19: the record", w.get(id), before)
		_, err := w.e.ReadToken(w.ctx(), operator, other, at)
		refused(t, err, base.CodeWaitpointNotFound)
		foreign := engine.Caller{Principal: "op", Actor: "operator", Namespaces: []string{"b"}}
		_, err = w.e.ReadToken(w.ctx(), foreign, id, at)
		refused(t, err, base.CodeExecutionNotFound)

		l := w.link(at, "ann")
		reissue := func() engine.Issued {
			return must(w.e.ReissueToken(w.ctx(), operator, at, engine.Operator{Reason: "leaked", RequestKey: "k"}))(t)
		}
		fresh := reissue()
		same(t, "W4: a repeat is no second reissue", []any{reissue().Token.Reveal(), w.count(id, "waitpoint.token_reissued")}, []any{fresh.Token.Reveal(), 1})
		same(t, "its links", [2]int{shown.LinkCount, reissue().LinkCount}, [2]int{0, 1})
		_, err = w.signal(at, s.Tokens[0], "go")
		refused(t, err, base.CodeInvalidToken)
		_, err = w.decideLink(l, "approve")
		refused(t, err, base.CodeLinkNotFound)
		_, err = w.e.ReissueToken(w.ctx(), foreign, at, engine.Operator{})
		refused(t, err, base.CodeWaitpointNotFound)
		must(w.signal(at, fresh.Token, "go"))(t)
		_, err = w.e.ReadToken(w.ctx(), operator, id, at)
		refused(t, err, base.CodeWaitpointNotFound)
		same(t, "U131", w.deeds("default"), []string{
			"default read_waitpoint_token waitpoint", "default create_link approval_link", "default reissue_token waitpoint",
		})
	})
}

func TestWI6_no_token_is_in_the_store(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		keyed := client
		keyed.RequestKey = "k"
		task := w.started(core.Submission{})
		a := must(w.e.CreateWaitpoint(w.ctx(), keyed, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: "b"}))(t)
		s := must(w.e.Suspend(w.ctx(), keyed, given(task), waitFor(task, atA)))(t)
		l := must(w.e.CreateLink(w.ctx(), operator, core.CreateLinkCommand{WaitpointID: a.ID, Approver: "ann"}, engine.Operator{RequestKey: "k"}))(t)
		must(w.e.ReissueToken(w.ctx(), operator, a.ID, engine.Operator{RequestKey: "k"}))(t)
		w.signalled(s, "go")
		dump := w.dump()
		for what, token := range map[string]keyring.Token{"waitpoint": a.Token, "suspension": s.Tokens[0], "link": l.Token} {
			digest := strings.TrimPrefix(token.Reveal(), "a:")
			if strings.Contains(dump, digest) || strings.Contains(dump, hex.EncodeToString([]byte(digest))) {
				t.Errorf("the token of the %s is in the store", what)
			}
		}
	})
}

func TestW57_the_token_is_looked_at_before_the_arguments_and_these_before_anything_else(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		w.cancel(id)
		at, good := s.Waitpoints[0].ID, s.Tokens[0]
		_, err := w.signal(at, spoilt(good), "__x")
		refused(t, err, base.CodeInvalidToken)
		_, err = w.signal(at, good, "__x")
		refused(t, err, base.CodeReservedName)
		_, err = w.signal(at, good, "x", func(c *core.SignalCommand) { c.SourceType = "operator" })
		refused(t, err, base.CodeReservedSourceType)
		_, err = w.signal(at, good, "x", func(c *core.SignalCommand) { c.Payload.Data = make([]byte, core.MaxSignalPayload+1) })
		refused(t, err, base.CodePayloadTooLarge)
		_, err = w.signal(at, good, "x")
		refused(t, err, base.CodeWaitpointClosed)
	})
}

func TestW58_W59_WI11_WI12_a_signal_is_stored_once_and_only_up_to_the_cap(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"max_signals_per_execution":2}`))
		s := w.suspend(task, `{"type":"count","n":3,"count_kind":"distinct_signals","waitpoints":["a"]}`)
		with := func(c *core.SignalCommand) { c.IdempotencyKey = "k" }
		send := func(name string, edits ...func(*core.SignalCommand)) (core.SignalAnswer, error) {
			return w.signal(s.Waitpoints[0].ID, s.Tokens[0], name, edits...)
		}
		first := must(send("x", with))(t)
		same(t, "again", must(send("x", with))(t), core.SignalAnswer{Duplicate: true, SignalID: first.SignalID, Effect: first.Effect, SameRequest: true})
		id := base.UUID{4, 4}
		must(send("y", func(c *core.SignalCommand) { c.SignalID = id }))(t)
		_, err := send("z")
		refused(t, err, base.CodeSignalLimitExceeded)
		same(t, "at the cap", must(send("other", with))(t), core.SignalAnswer{Duplicate: true, SignalID: first.SignalID, Effect: first.Effect})
		w.cancel(given(task))
		same(t, "after the end", must(send("y", func(c *core.SignalCommand) { c.SignalID = id }))(t).Duplicate, true)
		_, err = send("z")
		refused(t, err, base.CodeWaitpointClosed)
		same(t, "told", w.count(given(task), "signal.accepted"), 2)
	})
}

func TestW4_a_signal_with_a_request_key_is_answered_again(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		_, s := w.asleep(goAtA)
		keyed := stranger
		keyed.RequestKey = "k"
		send := func(name string) (core.SignalAnswer, error) {
			return w.e.Signal(w.ctx(), keyed, nil, s.Tokens[0], core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: name})
		}
		first := must(send("go"))(t)
		same(t, "again", must(send("go"))(t), first)
		_, err := send("stop")
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestW10_records_that_cannot_be_read_stop_their_own_commands_alone(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true
		id, s := w.asleep(atA)
		_, o := w.asleep(atA)
		w.spoilWaits(id)
		_, err := w.signal(s.Waitpoints[0].ID, s.Tokens[0], "go")
		refused(t, err, base.CodeCorruption)
		_, _, err = w.resume(id, core.ResumeCommand{})
		refused(t, err, base.CodeCorruption)
		same(t, "a sibling", w.signalled(o, "go"), condition.EffectSatisfied)
		w.cancel(id) // an end needs nothing but the record
	})
}
