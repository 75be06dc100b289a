// Package story is the chat example: a model answers a question, and the terminal shows each token as it comes. The worker is killed in
// the middle of the answer, another one takes over, and the reader does not see anything twice.
package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/llm"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Chat is the story.
var Chat = stage.Story{Name: "chat", Tell: tell}

// Answer is the work: a question is answered.
const Answer flowfabric.Kind[string, string] = "chat"

// lease is that of the worker that is killed: short, so that the takeover does not take long.
const lease = time.Second

// The pause of the fake model after each word. It is longer in the worker that is killed, so that the story is not too late for that.
const (
	slow  = 250 * time.Millisecond
	quick = 40 * time.Millisecond
)

// killAfter is how many bytes of the answer the reader sees before the worker is killed.
const killAfter = 30

// newWorker answers questions. What the model writes goes to the stream of the attempt, where readers see it at once.
func newWorker(s *stage.Stage, client *flowfabric.Client, pause, ttl time.Duration) *flowfabric.Worker {
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, LeaseTTL: ttl, Logger: s.Log})
	flowfabric.Handle(w, Answer, func(ctx context.Context, t *flowfabric.Task, question string) (string, error) {
		out := t.Stream(ctx)
		if url := os.Getenv(llm.URLVariable); url != "" {
			reply, err := llm.Ask(ctx, url, question, 0, out)
			return reply.Text, errors.Join(err, out.Flush())
		}
		reply, err := llm.Recite(ctx, "Sunlight has all colors. Air scatters short waves most, and blue light has short waves: "+
			"it comes from everywhere, and the sky is blue.", pause, out)
		return reply.Text, errors.Join(err, out.Flush())
	})
	return w
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if s.Part { // the process that is killed
		return newWorker(s, client, slow, lease).Run(ctx)
	}
	address, stopServing, err := s.Served(ctx, client, flowfabrichttp.Config{Open: true})
	if err != nil {
		return err
	}
	return errors.Join(chat(ctx, s, client, address), stopServing())
}

// chat asks the question and tells what the reader of the answer sees.
func chat(ctx context.Context, s *stage.Stage, client *flowfabric.Client, address string) error {
	const question = "Why is the sky blue?"
	run, err := Answer.Submit(ctx, client, question, flowfabric.SubmitOptions{Lane: s.Name, Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}})
	if err != nil {
		return err
	}
	process := s.AgainOn(ctx, address)
	if err := process.Start(); err != nil {
		return err
	}
	s.Say("Worker process %d answers %q: %s", process.Process.Pid, question, run.ID())
	r := &reader{Stage: s, client: client, process: process}
	err = r.read(ctx, run)
	r.kill() // unless that is done
	if r.stop != nil {
		err = errors.Join(err, r.stop())
	}
	if err != nil {
		return err
	}
	answer, err := run.Result(ctx)
	if err != nil {
		return err
	}
	if answer != r.text.String() {
		return fmt.Errorf("the reader has %q, and the result is %q", r.text.String(), answer)
	}
	s.Say("The reader has each token once: its text is the result, %d bytes.", len(answer))
	return nil
}

// reader follows a run in the terminal.
type reader struct {
	*stage.Stage
	client  *flowfabric.Client
	process *exec.Cmd       // the worker that is killed; nil: it was
	stop    func() error    // ends the worker that takes over; nil: there is none
	text    strings.Builder // what the newest attempt has said
}

// read shows the answer as it comes. What an attempt has said is void once another one starts.
func (r *reader) read(ctx context.Context, run *flowfabric.Run[string]) error {
	for frame, err := range run.Frames(ctx) {
		if err != nil {
			return err
		}
		switch frame.Type {
		case flowfabric.AttemptStarted:
			r.text.Reset()
			r.Show("--- attempt %d (%s) starts", frame.Attempt, frame.AttemptType)
		case flowfabric.AttemptClosed:
			fmt.Fprintln(r.Out)
			r.Show("--- attempt %d has ended: %s", frame.Attempt, frame.Reason)
		default:
			r.text.Write(frame.Payload.Data)
			fmt.Fprintf(r.Out, "%s", frame.Payload.Data)
		}
		if r.process != nil && r.text.Len() >= killAfter {
			r.takeOver(ctx)
		}
	}
	return ctx.Err()
}

// takeOver kills the worker, and lets another one wait for its lease to lapse.
func (r *reader) takeOver(ctx context.Context) {
	r.kill()
	fmt.Fprintln(r.Out)
	r.Say("The worker is killed with -9. Another one takes over when the lease lapses (%s).", lease)
	r.stop = stage.Start(ctx, newWorker(r.Stage, r.client, quick, 0))
}

// kill ends the process of the worker.
func (r *reader) kill() {
	if r.process != nil {
		_ = r.process.Process.Kill() // it may have ended
		_ = r.process.Wait()         // it was killed
		r.process = nil
	}
}
