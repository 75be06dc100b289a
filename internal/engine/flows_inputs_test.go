package engine_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// leaves ends a task with a result.
func leaves(data []byte, contentType string) ending {
	return func(e *engine.Engine, w *world, task engine.Task) error {
		_, err := e.Complete(w.ctx(), client, given(task), fence(task), &core.Payload{Data: data, ContentType: contentType})
		return err
	}
}

// told are inputs in one line each.
func told(inputs []core.NamedInput) (lines []string) {
	for _, in := range inputs {
		line := fmt.Sprintf("%s of %s %s", in.Name, in.From.Name, in.Outcome)
		if in.Result != nil {
			line += fmt.Sprintf(": %d bytes %s %q", in.Result.Size, in.Result.ContentType, in.Data)
		}
		if in.FailureReason != "" {
			line += " " + in.FailureReason
		}
		lines = append(lines, line)
	}
	return lines
}

func TestF33_F34_FI11_inputs_of_several_edges_and_a_retry_sees_the_same(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		binary := []byte{0, 1, 0xff, 0xfe, 0, '\n'}
		flow := w.submitFlow(core.FlowSubmission{
			Kind: "inputs", Nodes: append(nodesNamed("a", "b", "c", "f", "silent"), core.FlowNode{
				Name: "d", Kind: "d", Input: &core.Payload{Data: []byte("own"), ContentType: "text/plain"},
				PolicyJSON: []byte(`{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":1000}}}`),
			}),
			Edges: []core.FlowEdge{
				{From: "a", To: "d", Pass: "left"},
				{From: "b", To: "d", Pass: "right", Kind: core.AnyTerminal},
				{From: "c", To: "d", Pass: "absent"},
				{From: "f", To: "d", Pass: "failure", Kind: core.FailureOnly},
				{From: "silent", To: "d"},
			},
		})
		w.workOff("a", 1, leaves(binary, "application/x-bits"))
		w.workOff("b", 1, leaves([]byte(`{"x":1}`), "application/json"))
		w.workOff("c", 1, succeeds)
		w.workOff("f", 1, fails)
		w.workOff("silent", 1, leaves([]byte("unheard"), "text/plain"))
		task := w.takeKind("d", 1)[0]
		reason := w.member(flow, "f").Reason.String()
		want := []string{
			"absent of c succeeded", "failure of f failed " + reason, fmt.Sprintf("left of a succeeded: 6 bytes application/x-bits %q", binary),
			`right of b succeeded: 7 bytes application/json "{\"x\":1}"`,
		}
		same(t, "inputs", told(task.Inputs), want)
		same(t, "the submitted input", string(task.Execution.Input.Data), "own")
		in := must(w.e.ReadInput(w.ctx(), client, given(task), "left"))(t)
		same(t, "read", in.Data, binary)
		same(t, "absent", must(w.e.ReadInput(w.ctx(), client, given(task), "absent"))(t).Result == nil, true)
		_, err := w.e.ReadInput(w.ctx(), client, given(task), "nothing")
		refused(t, err, base.CodeInputNotFound)
		w.fail(task, "transient")
		w.pass(2 * base.Second)
		again := w.takeKind("d", 1)[0]
		same(t, "second attempt", []any{again.Execution.Attempt.Index, told(again.Inputs)}, []any{1, want})
		w.complete(again)
		same(t, "state", w.flowBecomes(flow, core.FlowCompleted).State, core.FlowCompleted)
	})
}

func TestF35_F36_under_any_of_the_first_counts_and_later_ones_add_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{
			Kind: "first", Nodes: append(nodesNamed("a", "b", "c"), core.FlowNode{Name: "d", Kind: "d", Join: &core.JoinSpec{Policy: core.Quorum, K: 2}}),
			Edges: []core.FlowEdge{{From: "a", To: "d", Pass: "answer"}, {From: "b", To: "d", Pass: "answer"}, {From: "c", To: "d", Pass: "late"}},
		})
		w.workOff("b", 1, leaves([]byte("from b"), "text/plain"))
		w.turn(10)
		w.workOff("a", 1, leaves([]byte("from a"), "text/plain"))
		w.workOff("c", 1, leaves([]byte("from c"), "text/plain"))
		task := w.takeKind("d", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{`answer of b succeeded: 6 bytes text/plain "from b"`})
		_, err := w.e.ReadInput(w.ctx(), client, flow.Members["d"].Given(), "late")
		refused(t, err, base.CodeInputNotFound)
	})
}

func TestF9_F33_after_passes_the_result_under_the_name_of_the_upstream(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitFlow(chain("a", "b"))
		w.workOff("work", 1, leaves([]byte("1"), "text/plain"))
		task := w.takeKind("work", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{`a of a succeeded: 1 bytes text/plain "1"`})
	})
}

func TestF37_inputs_beyond_a_mebibyte_come_as_references(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitFlow(core.FlowSubmission{
			Kind: "large", Nodes: append(nodesNamed("a", "b", "c"), core.FlowNode{Name: "d", Kind: "d"}),
			Edges: []core.FlowEdge{{From: "a", To: "d", Pass: "a"}, {From: "b", To: "d", Pass: "b"}, {From: "c", To: "d", Pass: "c"}},
		})
		large := func(fill byte) []byte { return bytes.Repeat([]byte{fill}, 600<<10) }
		w.workOff("a", 1, leaves(large('a'), "text/plain"))
		w.workOff("b", 1, leaves(large('b'), "text/plain"))
		w.workOff("c", 1, leaves([]byte("small"), "text/plain"))
		task := w.takeKind("d", 1)[0]
		same(t, "names", inputNames(task.Inputs), []string{"a", "b", "c"})
		var inline []int
		for _, in := range task.Inputs {
			inline = append(inline, len(in.Data))
			same(t, "size", in.Result.Size > 0, true)
		}
		same(t, "inline", inline, []int{600 << 10, 0, 5})
		for name, fill := range map[string]byte{"a": 'a', "b": 'b'} {
			if in := must(w.e.ReadInput(w.ctx(), client, given(task), name))(t); !bytes.Equal(in.Data, large(fill)) {
				t.Errorf("%s has %d bytes", name, len(in.Data))
			}
		}
		_, err := w.e.ReadInput(w.ctx(), engine.Caller{Principal: "x", Actor: "client", Namespaces: []string{"other"}}, given(task), "a")
		refused(t, err, base.CodeExecutionNotFound)
	})
}
