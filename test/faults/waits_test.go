package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestEveryCommandAboutWaitsSurvivesAFaultInAnyOfItsStoreCalls(t *testing.T) {
	t.Parallel()
	onStores(t, waiting(), deadlock, dropped, lost)
}

func TestTimersOfWaitsSurviveAFaultInAnyStoreCallOfTheSweep(t *testing.T) {
	t.Parallel()
	onStores(t, timedWaits(), dropped, lost)
}

// stranger is a caller who has nothing but a token, and sends every request under a key.
var stranger = engine.Caller{Principal: "missing", Actor: "client", Namespaces: []string{"nowhere"}, RequestKey: "once"}

// waitFor is a suspend at a fresh waitpoint a, until a signal go arrives.
func waitFor(f core.Fence) core.SuspendCommand {
	key := "a"
	return core.SuspendCommand{
		Fence: f, Waitpoints: []core.Binding{{Key: &key}}, Continuation: &core.Payload{Data: []byte("further")},
		Condition: &condition.Condition{Kind: condition.Single, Waitpoints: []string{key}, Matcher: condition.ByName("go")},
	}
}

// pending makes a waitpoint a.
func (r *try) pending(f core.Fence) engine.Issued {
	r.t.Helper()
	made, err := r.e.CreateWaitpoint(r.ctx, client, r.id(0), core.CreateWaitpointCommand{Fence: f, Key: "a"})
	must(r, err)
	return made
}

// asleep suspends.
func (r *try) asleep(edit func(*core.SuspendCommand)) engine.SuspendAnswer {
	r.t.Helper()
	cmd := waitFor(r.running(""))
	if edit != nil {
		edit(&cmd)
	}
	answer, err := r.e.Suspend(r.ctx, client, r.id(0), cmd)
	must(r, err)
	return answer
}

func (r *try) link(s engine.SuspendAnswer) engine.IssuedLink {
	r.t.Helper()
	link, err := r.e.CreateLink(r.ctx, operator, core.CreateLinkCommand{WaitpointID: s.Waitpoints[0].ID, Approver: "ann"}, engine.Operator{})
	must(r, err)
	return link
}

// tokens remembers what was shown: a repeat of a request shows the same (W27).
type tokens map[string]string

func (k tokens) shown(r *try, id base.UUID, token keyring.Token) string {
	text := token.Reveal()
	if known, ok := k[id.String()]; ok && known != text || text == "" {
		r.t.Errorf("W27: a repeat shows another token, or none")
	}
	k[id.String()] = text
	return id.String()
}

func suspendShown(r *try, k tokens, s engine.SuspendAnswer, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	answer := []any{s.Satisfied, s.SuspensionID.String(), s.TimeoutAt, s.Cause, s.Late}
	for i := range s.Waitpoints {
		answer = append(answer, s.Waitpoints[i].Key, k.shown(r, s.Waitpoints[i].ID, s.Tokens[i]))
	}
	for i := range s.Signals {
		answer = append(answer, s.Signals[i].Name, string(s.Signals[i].Payload.Data))
	}
	return answer, nil
}

// waiting is every command about waits that changes something.
func waiting() []scenario {
	return append(beginning(), meeting()...)
}

func beginning() []scenario {
	on := func(name string, do func(r *try, f core.Fence) func() (any, error)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) { return do(r, r.running("")) }}
	}
	keyed := client
	keyed.RequestKey = "once"
	create := func(c engine.Caller, idempotency string) func(r *try, f core.Fence) func() (any, error) {
		return func(r *try, f core.Fence) func() (any, error) {
			k := tokens{}
			return func() (any, error) {
				made, err := r.e.CreateWaitpoint(r.ctx, c, r.id(0), core.CreateWaitpointCommand{Fence: f, Key: "a", IdempotencyKey: idempotency})
				if err != nil {
					return nil, err
				}
				return []any{k.shown(r, made.ID, made.Token), made.ExpiresAt}, nil
			}
		}
	}
	suspend := func(c engine.Caller, prepare func(r *try, f core.Fence, cmd *core.SuspendCommand)) func(r *try, f core.Fence) func() (any, error) {
		return func(r *try, f core.Fence) func() (any, error) {
			k, cmd := tokens{}, waitFor(f)
			prepare(r, f, &cmd)
			return func() (any, error) {
				s, err := r.e.Suspend(r.ctx, c, r.id(0), cmd)
				return suspendShown(r, k, s, err)
			}
		}
	}
	return []scenario{
		on("create_waitpoint under an idempotency key", create(client, "k")),
		on("create_waitpoint under a request key", create(keyed, "")),
		on("suspend", suspend(client, func(*try, core.Fence, *core.SuspendCommand) {})),
		on("suspend under a request key", suspend(keyed, func(*try, core.Fence, *core.SuspendCommand) {})),
		on("suspend under an idempotency key with a timeout", suspend(client, func(_ *try, _ core.Fence, cmd *core.SuspendCommand) {
			ms := base.Hour
			cmd.IdempotencyKey, cmd.TimeoutMS = "k", &ms
		})),
		on("suspend that adopts a waitpoint", suspend(client, func(r *try, f core.Fence, cmd *core.SuspendCommand) {
			cmd.Waitpoints = []core.Binding{{UsePending: true, ID: r.pending(f).ID}}
		})),
		on("suspend whose condition is met", suspend(client, func(r *try, f core.Fence, cmd *core.SuspendCommand) {
			made := r.pending(f)
			must(r, discard(r.e.Signal(r.ctx, stranger, nil, made.Token, core.SignalCommand{WaitpointID: made.ID, Name: "go", Payload: core.Payload{Data: []byte("early")}})))
			cmd.IdempotencyKey, cmd.Waitpoints = "k", []core.Binding{{UsePending: true, ID: made.ID}}
		})),
		on("close_waitpoint", func(r *try, f core.Fence) func() (any, error) {
			made := r.pending(f)
			return bare(func() error {
				return discard(r.e.CloseWaitpoint(r.ctx, client, made.ID, &f, engine.Operator{RequestKey: "once"}))
			})
		}),
	}
}

func meeting() []scenario {
	on := func(name string, do func(r *try, s engine.SuspendAnswer) func() (any, error)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) { return do(r, r.asleep(nil)) }}
	}
	signal := func(c engine.Caller, name, idempotency string) func(r *try, s engine.SuspendAnswer) func() (any, error) {
		return func(r *try, s engine.SuspendAnswer) func() (any, error) {
			cmd := core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: name, IdempotencyKey: idempotency, Payload: core.Payload{Data: []byte("it")}}
			return func() (any, error) {
				got, err := r.e.Signal(r.ctx, c, nil, s.Tokens[0], cmd)
				return []any{got.SignalID.String(), got.Effect}, err
			}
		}
	}
	approve := func(o engine.Operator, named bool) func(r *try, s engine.SuspendAnswer) func() (any, error) {
		return func(r *try, s engine.SuspendAnswer) func() (any, error) {
			cmd := core.ApproveCommand{Name: "go", Comment: "fine"}
			if named {
				cmd.WaitpointID = s.Waitpoints[0].ID
			}
			return func() (any, error) {
				got, err := r.e.Approve(r.ctx, operator, r.id(0), cmd, o)
				return []any{got.SignalID.String(), got.Effect}, err
			}
		}
	}
	unkeyed := stranger
	unkeyed.RequestKey = ""
	all := []scenario{
		on("signal that meets the condition", signal(unkeyed, "go", "k")),
		on("signal under a request key", signal(stranger, "go", "")),
		on("signal that does not", signal(unkeyed, "stop", "k")),
		on("approve of the one waitpoint that is active", approve(key, false)),
		on("approve of a waitpoint", approve(engine.Operator{}, true)),
		on("resume", func(r *try, _ engine.SuspendAnswer) func() (any, error) {
			return func() (any, error) {
				view, already, err := r.e.Resume(r.ctx, operator, r.id(0), core.ResumeCommand{DelayMS: base.Hour}, key)
				text, err := shown(view, err)
				return []any{text, already}, err
			}
		}),
		on("cancel of what waits", func(r *try, _ engine.SuspendAnswer) func() (any, error) {
			return func() (any, error) { return shown(r.e.Cancel(r.ctx, operator, r.id(0), nil, "", key)) }
		}),
	}
	return append(all, linking(on, unkeyed)...)
}

// linking is what concerns tokens and links of what waits, and who goes on with it.
func linking(on func(string, func(*try, engine.SuspendAnswer) func() (any, error)) scenario, unkeyed engine.Caller) []scenario {
	return []scenario{
		on("reissue_token", func(r *try, s engine.SuspendAnswer) func() (any, error) {
			k := tokens{}
			return func() (any, error) {
				got, err := r.e.ReissueToken(r.ctx, operator, s.Waitpoints[0].ID, key)
				if err != nil {
					return nil, err
				}
				return k.shown(r, got.ID, got.Token), nil
			}
		}),
		on("create_link", func(r *try, s engine.SuspendAnswer) func() (any, error) {
			k := tokens{}
			return func() (any, error) {
				got, err := r.e.CreateLink(r.ctx, operator, core.CreateLinkCommand{WaitpointID: s.Waitpoints[0].ID, Approver: "ann"}, key)
				if err != nil {
					return nil, err
				}
				return k.shown(r, got.ID, got.Token), nil
			}
		}),
		on("decide", func(r *try, s engine.SuspendAnswer) func() (any, error) {
			link := r.link(s)
			return func() (any, error) {
				got, err := r.e.Decide(r.ctx, unkeyed, link.Token, core.DecideCommand{LinkID: link.ID, Decision: "approve", Comment: "fine"})
				return string(got.End.Encode()), err
			}
		}),
		on("revoke_link", func(r *try, s engine.SuspendAnswer) func() (any, error) {
			link := r.link(s)
			return bare(func() error { return r.e.RevokeLink(r.ctx, operator, link.ID, nil, key) })
		}),
		on("claim of what was resumed", func(r *try, s engine.SuspendAnswer) func() (any, error) {
			must(r, discard(r.e.Signal(r.ctx, stranger, nil, s.Tokens[0], core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go", Payload: core.Payload{Data: []byte("it")}})))
			return func() (any, error) {
				got, err := r.e.Claim(r.ctx, client, r.claimRequest("c"))
				if err != nil || len(got.Tasks) != 1 {
					return nil, err
				}
				o := got.Tasks[0].Resumed
				return []any{got.Tasks[0].How, o.Cause, string(o.Continuation.Data), string(o.Signals[0].Payload.Data)}, nil
			}
		}),
	}
}

// timedWaits is what timers do to waits.
func timedWaits() []scenario {
	after := func(name string, wait time.Duration, setup func(r *try)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			setup(r)
			return func() (any, error) {
				r.clock.Step(wait)
				r.recover()
				return nil, nil
			}
		}}
	}
	var all []scenario
	for _, behavior := range []string{core.BehaviorFail, core.BehaviorCancel, core.BehaviorExpire, core.BehaviorAutoResume, core.BehaviorEscalate} {
		all = append(all, after("a wait times out: "+behavior, time.Minute, func(r *try) {
			ms := base.Minute
			r.asleep(func(c *core.SuspendCommand) { c.TimeoutMS, c.Behavior = &ms, behavior })
		}))
	}
	return append(all,
		after("a pending waitpoint expires", time.Minute, func(r *try) {
			ms := base.Minute
			f := r.running("")
			must(r, discard(r.e.CreateWaitpoint(r.ctx, client, r.id(0), core.CreateWaitpointCommand{Fence: f, Key: "a", ExpiresInMS: &ms})))
		}),
		after("a delay after a resume is over", time.Minute, func(r *try) {
			r.asleep(nil)
			_, _, err := r.e.Resume(r.ctx, operator, r.id(0), core.ResumeCommand{DelayMS: base.Minute}, engine.Operator{})
			must(r, err)
		}),
	)
}

// putWaits writes down all that is left of an execution's waits.
func (r *try) putWaits(put func(what string, v any), id base.GivenID) {
	r.t.Helper()
	history, err := r.e.Suspensions(r.ctx, client, id, "", nil)
	must(r, err)
	for _, o := range history.Items {
		put("suspension", []any{o.Seq, o.ID.String(), o.Cause, o.At, o.TimeoutAt, o.ClosedAt, o.CloserSignalID.String(), o.By, o.EscalatedAt, o.ReasonCode, o.Late, o.Early})
	}
	signals, err := r.e.Signals(r.ctx, client, id, engine.SignalQuery{})
	must(r, err)
	for _, s := range signals.Items {
		put("signal", []any{s.Ordinal, s.ID.String(), s.Name, s.SourceType, s.SourceIdentity, s.AcceptedAt, s.Effect, s.Matched, string(s.Payload.Data)})
	}
	points, err := r.e.Waitpoints(r.ctx, client, engine.WaitpointQuery{Execution: &id, State: "all"})
	must(r, err)
	for i := range points.Items {
		w := &points.Items[i]
		put("waitpoint", fmt.Sprint(w.ID, w.Key, w.State, w.CloseReason, w.ClosedAt, w.MintedAt, w.ExpiresAt, w.SignalCount, w.TokenKid))
		links, err := r.e.Links(r.ctx, client, w.ID)
		must(r, err)
		for _, l := range links {
			put("link", []any{l.ID.String(), l.State, l.ExpiresAt, l.End != nil})
		}
	}
}
