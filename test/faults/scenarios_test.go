package faults

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

const retrying = `{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":500}}}`

// call turns a method with an answer into a call.
func call[T any](f func() (T, error)) func() (any, error) {
	return func() (any, error) {
		answer, err := f()
		return answer, err
	}
}

// bare turns a method without an answer into a call.
func bare(f func() error) func() (any, error) {
	return func() (any, error) { return nil, f() }
}

// key is what an operator sends with every command.
var key = engine.Operator{Reason: "because", RequestKey: "once"}

// shown keeps of a view what two runs have in common at once; the record is compared as a whole afterwards.
func shown(view engine.View, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return view.Execution.Status.String() + " " + view.Execution.Reason.String(), nil
}

// scenarios is every operation of the engine.
func scenarios() []scenario {
	all := append(creating(), working()...)
	all = append(all, operating()...)
	return append(all, fleet()...)
}

func creating() []scenario {
	return []scenario{
		{name: "submit with an id", setup: func(r *try) func() (any, error) {
			return call(func() (engine.SubmitAnswer, error) { return r.e.Submit(r.ctx, client, r.submission(0, retrying)) })
		}},
		{name: "submit with a key", setup: func(r *try) func() (any, error) {
			s := r.submission(0, "")
			s.IdempotencyKey = r.name
			s.DelayUntil, s.DeadlineAt = r.clock.StoreNow().Add(base.Hour), r.clock.StoreNow().Add(base.Day)
			return call(func() (engine.SubmitAnswer, error) { return r.e.Submit(r.ctx, client, s) })
		}},
		{name: "submit what exists", setup: func(r *try) func() (any, error) {
			r.submit(0, "")
			return call(func() (engine.SubmitAnswer, error) { return r.e.Submit(r.ctx, client, r.submission(0, "")) })
		}},
		{name: "submit many", setup: func(r *try) func() (any, error) {
			return submitMany(r, false)
		}},
		{name: "submit many together", setup: func(r *try) func() (any, error) {
			return submitMany(r, true)
		}},
		{name: "claim", setup: func(r *try) func() (any, error) {
			r.submit(0, "")
			r.submit(1, retrying)
			return func() (any, error) {
				got, err := r.e.Claim(r.ctx, client, r.claimRequest("c"))
				var fences []core.Fence
				for _, t := range got.Tasks {
					fences = append(fences, core.Fence{LeaseID: t.Execution.Lease.ID, Epoch: t.Execution.LeaseEpoch, AttemptID: t.Execution.Lease.AttemptID})
				}
				return fences, err
			}
		}},
		{name: "claim_resumed", setup: func(r *try) func() (any, error) {
			f := r.running("")
			must(r, discard(r.e.Release(r.ctx, client, r.id(0), f, "")))
			return r.targeted(client, r.e.ClaimResumed)
		}},
		{name: "reclaim", setup: func(r *try) func() (any, error) {
			r.running("")
			must(r, discard(r.e.Revoke(r.ctx, operator, r.id(0), engine.RevokeRequest{}, engine.Operator{})))
			return r.targeted(client, r.e.Reclaim)
		}},
		{name: "operator_claim", setup: func(r *try) func() (any, error) {
			r.submit(0, "")
			return r.targeted(operator, r.e.OperatorClaim)
		}},
	}
}

func submitMany(r *try, atomic bool) func() (any, error) {
	all := []core.Submission{r.submission(0, ""), r.submission(1, retrying), r.submission(2, "")}
	return func() (any, error) {
		items, err := r.e.SubmitMany(r.ctx, client, all, atomic)
		for _, item := range items {
			err = errors.Join(err, item.Err)
		}
		return nil, err
	}
}

// discard keeps the error of a call whose answer does not matter.
func discard[T any](_ T, err error) error { return err }

func must(r *try, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("setup: %v", err)
	}
}

func working() []scenario {
	// on makes a scenario of a command on an execution that runs.
	on := func(name, policy string, do func(r *try, f core.Fence) (any, error)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			f := r.running(policy)
			return func() (any, error) { return do(r, f) }
		}}
	}
	return []scenario{
		on("complete", "", func(r *try, f core.Fence) (any, error) {
			return r.e.Complete(r.ctx, client, r.id(0), f, &core.Payload{Data: []byte("out")})
		}),
		on("fail and retry", retrying, func(r *try, f core.Fence) (any, error) {
			return r.e.Fail(r.ctx, client, r.id(0), core.FailCommand{Fence: f, Message: "no"})
		}),
		on("fail for good", "", func(r *try, f core.Fence) (any, error) {
			return r.e.Fail(r.ctx, client, r.id(0), core.FailCommand{Fence: f, Class: "permanent", Detail: []byte{0, 255}})
		}),
		on("delay", "", func(r *try, f core.Fence) (any, error) {
			return r.e.Delay(r.ctx, client, r.id(0), f, r.clock.StoreNow().Add(base.Hour))
		}),
		on("release", "", func(r *try, f core.Fence) (any, error) { return r.e.Release(r.ctx, client, r.id(0), f, "stop") }),
		on("progress", "", func(r *try, f core.Fence) (any, error) {
			percent := 7
			return nil, r.e.Progress(r.ctx, client, r.id(0), f, &percent, nil)
		}),
		on("step", "", func(r *try, f core.Fence) (any, error) {
			return r.e.PutStep(r.ctx, client, r.id(0), f, "s", core.Payload{Data: []byte("done")})
		}),
		on("cancel by the holder", "", func(r *try, f core.Fence) (any, error) {
			return shown(r.e.Cancel(r.ctx, client, r.id(0), &f, "", engine.Operator{}))
		}),
		on("renew", "", func(r *try, f core.Fence) (any, error) {
			items, err := r.e.Renew(r.ctx, client, []engine.LeaseRef{{ID: r.id(0), Fence: f, TTL: 2 * base.Hour}})
			return nil, errors.Join(err, items[0].Err)
		}),
		on("complete_override", "", func(r *try, _ core.Fence) (any, error) {
			return r.e.CompleteOverride(r.ctx, operator, r.id(0), nil, key)
		}),
		on("fail_override", retrying, func(r *try, _ core.Fence) (any, error) {
			return r.e.FailOverride(r.ctx, operator, r.id(0), core.FailCommand{Message: "no"}, key)
		}),
		on("revoke", "", func(r *try, _ core.Fence) (any, error) {
			return r.e.Revoke(r.ctx, operator, r.id(0), engine.RevokeRequest{Hold: true}, key)
		}),
	}
}

func operating() []scenario {
	// on makes a scenario of an operator's command on an execution that is ready, or finished.
	on := func(name string, finished bool, do func(r *try) (any, error)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			r.submit(0, "")
			if finished {
				f := r.claim()
				must(r, discard(r.e.PutStep(r.ctx, client, r.id(0), f, "s", core.Payload{})))
				must(r, discard(r.e.Complete(r.ctx, client, r.id(0), f, nil)))
			}
			return func() (any, error) { return do(r) }
		}}
	}
	value := "v"
	all := []scenario{
		on("cancel", false, func(r *try) (any, error) { return shown(r.e.Cancel(r.ctx, operator, r.id(0), nil, "", key)) }),
		on("set_priority", false, func(r *try) (any, error) { return shown(r.e.SetPriority(r.ctx, operator, r.id(0), 5, key)) }),
		on("hold", false, func(r *try) (any, error) { return shown(r.e.Hold(r.ctx, operator, r.id(0), key)) }),
		on("hold and release_hold", false, func(r *try) (any, error) {
			if _, err := r.e.Hold(r.ctx, operator, r.id(0), key); err != nil {
				return nil, err
			}
			return shown(r.e.ReleaseHold(r.ctx, operator, r.id(0), key))
		}),
		on("set_tags", false, func(r *try) (any, error) {
			return r.e.SetTags(r.ctx, operator, r.id(0), map[string]*string{"t": &value}, key)
		}),
		on("replay", true, func(r *try) (any, error) {
			return shown(r.e.Replay(r.ctx, operator, r.id(0), engine.ReplayRequest{KeepSteps: true}, key))
		}),
		on("retain and end_retain", true, func(r *try) (any, error) {
			if _, err := r.e.Retain(r.ctx, operator, r.id(0), 0, key); err != nil {
				return nil, err
			}
			return shown(r.e.Unretain(r.ctx, operator, r.id(0), key))
		}),
	}
	remove := on("delete", true, func(r *try) (any, error) { return nil, r.e.Delete(r.ctx, operator, r.id(0), key) })
	remove.again = base.CodeExecutionNotFound
	all = append(all, remove)
	return append(all, reading(on)...)
}

func reading(on func(name string, finished bool, do func(r *try) (any, error)) scenario) []scenario {
	return []scenario{
		on("describe", false, func(r *try) (any, error) { return shown(r.e.Describe(r.ctx, client, r.id(0))) }),
		on("wait", true, func(r *try) (any, error) { return shown(r.e.Wait(r.ctx, client, r.id(0), time.Minute)) }),
		on("result", true, func(r *try) (any, error) { return r.e.Result(r.ctx, client, r.id(0)) }),
		on("attempts", true, func(r *try) (any, error) { return r.e.Attempts(r.ctx, client, r.id(0)) }),
		on("steps", true, func(r *try) (any, error) { return r.e.Steps(r.ctx, client, r.id(0), engine.StepsRequest{}) }),
		on("list", true, func(r *try) (any, error) {
			page, err := r.e.List(r.ctx, client, engine.ListRequest{Filter: core.Filter{Lane: []string{r.name}}})
			return len(page.Items), err
		}),
		on("count", true, func(r *try) (any, error) {
			n, err := r.e.Count(r.ctx, client, core.Filter{Lane: []string{r.name}})
			return n.Total, err
		}),
	}
}

type targetedClaim func(context.Context, engine.Caller, base.GivenID, engine.TargetedRequest) (engine.Task, error)

// targeted calls for one named execution.
func (r *try) targeted(by engine.Caller, claim targetedClaim) func() (any, error) {
	return func() (any, error) {
		t, err := claim(r.ctx, by, r.id(0), engine.TargetedRequest{WorkerID: "w", InstanceID: r.name, TTL: base.Hour, RequestKey: "t"})
		if err != nil {
			return nil, err
		}
		return []any{t.How, t.Execution.LeaseEpoch}, nil
	}
}

func fleet() []scenario {
	return []scenario{
		{name: "register", setup: func(r *try) func() (any, error) {
			return call(func() (engine.RegisterAnswer, error) {
				return r.e.Register(r.ctx, client, core.Registration{WorkerID: "w", InstanceID: r.name, Lanes: []string{r.name}})
			})
		}},
		{name: "heartbeat", setup: func(r *try) func() (any, error) {
			f := r.running("")
			return func() (any, error) {
				answer, err := r.e.Heartbeat(r.ctx, client, r.name, []engine.LeaseRef{{ID: r.id(0), Fence: f}})
				for _, item := range answer.Leases {
					err = errors.Join(err, item.Err)
				}
				return answer.Registered, err
			}
		}},
		{name: "drain", setup: func(r *try) func() (any, error) {
			r.running("")
			return bare(func() error { return r.e.Drain(r.ctx, operator, "", r.name, true) })
		}},
		{name: "mark_dead", setup: func(r *try) func() (any, error) {
			r.running("")
			return bare(func() error { return r.e.MarkDead(r.ctx, operator, r.name, "gone", true) })
		}},
		{name: "put_lane", setup: func(r *try) func() (any, error) {
			return bare(func() error {
				return discard(r.e.PutLane(r.ctx, operator, r.name, core.LaneSettings{AgeingMS: 1000}, key))
			})
		}},
		{name: "set_lane_state", setup: func(r *try) func() (any, error) {
			r.submit(0, "")
			return bare(func() error { return discard(r.e.SetLaneState(r.ctx, operator, r.name, core.LanePaused, key)) })
		}},
	}
}

// recover lets the sweep try again after what it had taken and lost is visible to it once more.
func (r *try) recover() {
	for range 2 {
		r.sweep()
		r.clock.Step(6 * time.Second)
	}
	r.sweep()
}

// timed is what timers do. The store's clock moves on while the sweep tries again, so that hidden timers come back.
func timed() []scenario {
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
	return []scenario{
		{name: "put_lane with a cap", setup: func(r *try) func() (any, error) {
			r.running("")
			r.submit(1, "")
			return func() (any, error) {
				_, err := r.e.PutLane(r.ctx, operator, r.name, core.LaneSettings{MaxConcurrent: 1}, engine.Operator{})
				r.recover()
				return nil, err
			}
		}},
		after("a lease lapses", 2*time.Hour, func(r *try) { r.running("") }),
		after("a lease lapses too often", 2*time.Hour, func(r *try) { r.running(`{"max_reclaim_count":0}`) }),
		after("a delay is over", time.Minute, func(r *try) {
			s := r.submission(0, "")
			s.DelayUntil = r.clock.StoreNow().Add(base.Minute)
			must(r, discard(r.e.Submit(r.ctx, client, s)))
		}),
		after("a deadline comes", time.Minute, func(r *try) { r.running(`{"timeout_policy":{"execution_deadline_ms":60000}}`) }),
		after("an attempt times out", 30*time.Second, func(r *try) {
			r.running(`{"timeout_policy":{"attempt_timeout_ms":30000},"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":60000}}}`)
		}),
		after("retention ends", time.Minute, func(r *try) {
			f := r.running(`{"retention_ms":1000}`)
			must(r, discard(r.e.Complete(r.ctx, client, r.id(0), f, nil)))
		}),
	}
}
