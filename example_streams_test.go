package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric"
)

// model is what answers questions, word by word.
func model(string) iter.Seq[string] {
	return slices.Values([]string{"The answer ", "is ", "42.", "\n"})
}

// talk streams an answer. The first attempt fails in the middle of it.
func talk(ctx context.Context, t *flowfabric.Task, question string) (string, error) {
	out := t.Stream(ctx)
	for token := range model(question) {
		if token == "42." && t.Attempt().Index == 0 {
			return "", errors.New("the connection to the model is lost")
		}
		fmt.Fprint(out, token) // durable, in order, under the fence
	}
	return "42", out.Flush()
}

// listen prints what the attempts say.
func listen(ctx context.Context, run *flowfabric.Run[string]) error {
	for frame, err := range run.Frames(ctx) {
		switch {
		case err != nil:
			return err
		case frame.Type == flowfabric.AttemptStarted:
			fmt.Println("--- attempt", frame.Attempt) // what came before is superseded
		default:
			os.Stdout.Write(frame.Payload.Data)
		}
	}
	return nil // ends when the execution ends
}

// Stream an answer while it is made. A reader that starts anew at each attempt shows nothing twice.
func ExampleTask_Stream() {
	ctx := context.Background()
	const Talk flowfabric.Kind[string, string] = "talk"
	client, end := begin(ctx, func(w *flowfabric.Worker) { flowfabric.Handle(w, Talk, talk) })
	defer end()

	run, err := Talk.Submit(ctx, client, "What is the answer?", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{
		Retry: &flowfabric.RetryPolicy{MaxRetries: 1, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: time.Millisecond}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Result(ctx))
	fmt.Println(listen(ctx, run)) // or while it runs
	// Output:
	// 42 <nil>
	// --- attempt 1
	// The answer is 42.
	// <nil>
}
