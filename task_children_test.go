package flowfabric_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
)

func TestU139_F38_a_handler_spawns_children_waits_for_them_and_goes_on(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var calls atomic.Int64
		resumed := make(chan flowfabric.Resume, 4)
		w.parts(t)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			calls.Add(1)
			if r, ok := task.Resumed(); ok {
				resumed <- r
			}
			spawned, err := task.Spawn(ctx, part.Node("a", "A"), part.Node("b", "B").After("a"))
			if err != nil {
				return nil, err
			}
			children, err := task.WaitForChildren(ctx)
			if err != nil {
				return nil, err
			}
			var got []string
			for _, child := range children {
				text, err := flowfabric.ChildResult[string](ctx, task, child)
				if err != nil || child.ID != spawned[child.Name] {
					return nil, errors.Join(err, errors.New("another child "+child.Name))
				}
				got = append(got, child.Name+":"+text)
			}
			return got, nil
		})
		got := must[[]string](t)(run.Result(ctx))
		if slices.Sort(got); !slices.Equal(got, []string{"a:A", "b:B,a=A"}) {
			t.Errorf("%q", got)
		}
		if n := calls.Load(); n == 2 {
			if r := receive(t, resumed); r.Cause != "children" || len(r.Children) != 2 || r.Children[0].Outcome != flowfabric.StatusSucceeded {
				t.Errorf("%+v", r)
			}
		} else if n != 1 { // they may have ended before the wait began
			t.Errorf("the handler was called %d times", n)
		}
		var names []string
		for child, err := range w.Executions().Children(ctx, run.ID()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, child.Name)
		}
		if !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("%q", names)
		}
		one := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if one.TotalAttempts != 1 {
			t.Errorf("%+v", one)
		}
	})
}

func TestF43_children_are_spawned_and_waited_for_in_one_step(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.parts(t)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			children, err := task.SpawnAndWait(ctx, flowfabric.Spawning{Children: []flowfabric.Node{part.Node("a", "A"), part.Node("b", "fail")}},
				flowfabric.ChildrenOptions{Kind: flowfabric.OnSuccess})
			if !errors.Is(err, flowfabric.ErrChildrenImpossible) {
				return nil, errors.Join(err, nil)
			}
			var got []string
			for _, child := range children {
				if child.Name == "b" {
					got = append(got, string(child.Outcome), child.FailureReason)
				}
			}
			return got, nil
		})
		got := must[[]string](t)(run.Result(inTime(t)))
		if len(got) != 2 || got[0] != "failed" || got[1] == "" {
			t.Errorf("%q", got)
		}
	})
}

func TestF41_a_wait_for_children_ends_with_its_time(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			if _, err := task.Spawn(ctx, part.Node("slow", "S", flowfabric.SubmitOptions{Delay: time.Hour})); err != nil {
				return nil, err
			}
			children, err := task.WaitForChildren(ctx, flowfabric.ChildrenOptions{Names: []string{"slow"}, Timeout: 50 * time.Millisecond})
			if errors.Is(err, flowfabric.ErrChildrenTimeout) {
				return []string{children[0].Name, string(children[0].Outcome)}, nil
			}
			return nil, err
		})
		if got := must[[]string](t)(run.Result(inTime(t))); !slices.Equal(got, []string{"slow", ""}) {
			t.Errorf("%q", got)
		}
	})
}

func TestF39_F40_what_a_spawn_and_a_wait_cannot_do_is_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) (codes []string, err error) {
			note := func(err error) { codes = append(codes, flowfabric.CodeOf(err)) }
			later := flowfabric.SubmitOptions{Delay: time.Hour}
			if _, err := task.Spawn(ctx, part.Node("a", "A", later)); err != nil {
				return nil, err
			}
			again, err := task.SpawnWith(ctx, flowfabric.Spawning{Children: []flowfabric.Node{part.Node("a", "A", later)}})
			if err != nil || again.Created != 0 || len(again.IDs) != 1 {
				return nil, errors.Join(err, errors.New("it was spawned twice"))
			}
			_, err = task.Spawn(ctx, part.Node("a", "other", later))
			note(err)
			_, err = task.Spawn(ctx, part.Node("b", "B").After("missing"))
			note(err)
			_, err = task.WaitForChildren(ctx, flowfabric.ChildrenOptions{Names: []string{"missing"}})
			note(err)
			_, err = task.WaitForChildren(ctx, flowfabric.ChildrenOptions{Policy: flowfabric.JoinQuorum})
			note(err)
			_, err = task.Spawn(ctx)
			note(err)
			return codes, nil
		})
		got := must[[]string](t)(run.Result(inTime(t)))
		if strings.Join(got[:4], " ") != "name_taken unknown_name child_not_found invalid_join" && strings.Join(got[:4], " ") != "name_taken execution_not_in_flow child_not_found invalid_join" {
			t.Errorf("%q", got)
		}
	})
}

func TestU138_a_member_knows_its_flow_its_name_and_what_it_did_not_get(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		const look flowfabric.Kind[flowfabric.None, []string] = "look"
		w.parts(t)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, look, func(_ context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
				_, missing := flowfabric.InputFrom[string](task, "missing")
				_, failed := flowfabric.InputFrom[string](task, "bad")
				return []string{string(task.FlowID()), task.Name(), flowfabric.CodeOf(missing), flowfabric.CodeOf(failed), task.Inputs()[0].FailureReason}, nil
			})
		})
		run := w.flow(t, flowfabric.Flow{Kind: "k", Nodes: []flowfabric.Node{part.Node("bad", "fail"), look.Node("looks", flowfabric.None{}).AfterEnd("bad")}})
		got := must[[]string](t)(flowfabric.Attach[[]string](w.Client, run.Members["looks"]).Result(ctx))
		if got[0] != string(run.ID) || got[1] != "looks" || got[2] != "input_not_found" || got[3] != "input_not_found" || got[4] == "" {
			t.Errorf("%q", got)
		}
	})
}

func TestF37_a_large_result_of_another_member_is_fetched(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		const large flowfabric.Kind[flowfabric.None, []byte] = "large"
		const size flowfabric.Kind[flowfabric.None, []int] = "size"
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, large, func(context.Context, *flowfabric.Task, flowfabric.None) ([]byte, error) {
				return make([]byte, 1<<20+1), nil
			})
			flowfabric.Handle(worker, size, func(_ context.Context, task *flowfabric.Task, _ flowfabric.None) ([]int, error) {
				data, err := flowfabric.InputFrom[[]byte](task, "big")
				omitted := 0
				if task.Inputs()[0].Result.Omitted() {
					omitted = 1
				}
				return []int{len(data), task.Inputs()[0].Result.Size(), omitted}, err
			})
		})
		run := w.flow(t, flowfabric.Flow{Kind: "k", Nodes: []flowfabric.Node{large.Node("big", flowfabric.None{}), size.Node("measure", flowfabric.None{}).After("big")}})
		got := must[[]int](t)(flowfabric.Attach[[]int](w.Client, run.Members["measure"]).Result(ctx))
		if !slices.Equal(got, []int{1<<20 + 1, 1<<20 + 1, 1}) {
			t.Errorf("%v", got)
		}
	})
}
