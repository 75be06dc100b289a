// Package story is the race example: five models are asked one question, in one flow, and stream their answers. The first good answer
// wins, an answer that is none does not count, and who is still thinking is cancelled. The example's own program tells it, and so does flowfabric demo.
package story

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/llm"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Race is the story.
var Race = stage.Story{Name: "race", Tell: func(ctx context.Context, s *stage.Stage) error { return Tell(ctx, s, modelOf()) }}

// The work: each runner is asked, and one answer is chosen.
const (
	Ask    flowfabric.Kind[Question, Answer]        = "ask"
	Choose flowfabric.Kind[flowfabric.None, Answer] = "choose"
)

// Question is what a runner is asked.
type Question struct{ Runner, Text string }

// Answer is what a runner says.
type Answer struct {
	Runner, Text string
	Tokens       int64
}

// chosen is the name of the node that waits for the first answer, and of the input that it gets.
const (
	chosen = "chosen"
	answer = "answer"
)

// course is where the story plays.
type course struct {
	*stage.Stage
	client *flowfabric.Client
	model  Model
	ended  chan ending
}

// ending is how the handler of a runner ended: it was stopped, or had its answer.
type ending struct {
	runner  string
	stopped bool
	why     error
}

// Tell tells the story with that model.
func Tell(ctx context.Context, s *stage.Stage, model Model) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	c := &course{Stage: s, client: client, model: model, ended: make(chan ending, 64)}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Concurrency: 8, Logger: s.Log})
	flowfabric.Handle(w, Ask, c.ask)
	flowfabric.Handle(w, Choose, c.choose)
	stop := stage.Start(ctx, w)
	return errors.Join(c.run(ctx), stop())
}

// Standing is the summary document of a runner: how far it is.
type Standing struct {
	State string `json:"state,omitempty"` // left out where it does not change
	Words int    `json:"words"`
}

// counter keeps the standing of a runner while it writes its answer.
type counter struct {
	*flowfabric.StreamWriter
	words int
}

// Write writes a word, or a few of them, and counts them in the summary document.
func (c *counter) Write(text []byte) (int, error) {
	n, err := c.StreamWriter.Write(text)
	c.words += len(strings.Fields(string(text)))
	return n, errors.Join(err, c.Merge(Standing{Words: c.words}))
}

// ask is one runner. An answer without words is no answer, and no retry mends it.
func (c *course) ask(ctx context.Context, t *flowfabric.Task, q Question) (Answer, error) {
	out := &counter{StreamWriter: t.Stream(ctx)}
	var reply llm.Reply
	err := out.Merge(Standing{State: "answering"})
	if err == nil {
		reply, err = c.model(ctx, q.Runner, q.Text, out)
	}
	stopped := ctx.Err() != nil // else it has answered, and may be too late all the same
	defer func() { c.ended <- ending{q.Runner, stopped, context.Cause(ctx)} }()
	switch {
	case stopped:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, err
	case strings.TrimSpace(reply.Text) == "":
		return Answer{}, errors.Join(out.Merge(Standing{State: "knows nothing"}), flowfabric.Permanent(errors.New("it does not know")))
	}
	return Answer{q.Runner, reply.Text, reply.Tokens}, out.Merge(Standing{State: "done", Words: out.words})
}

// choose takes the answer that was first: it is the only one that there is.
func (c *course) choose(_ context.Context, t *flowfabric.Task, _ flowfabric.None) (Answer, error) {
	return flowfabric.InputFrom[Answer](t, answer)
}

// run submits the race and tells how it ends.
func (c *course) run(ctx context.Context) error {
	const question = "Why is the sky blue?"
	run, err := c.client.Flows().Submit(ctx, c.race(question))
	if err != nil {
		return err
	}
	c.Say("Five models are asked %q: flow %s. One node waits for the first of them.", question, run.ID)
	for _, runner := range Runners {
		c.Show("%s: %s", runner, run.Members[runner])
	}
	flow, err := c.client.Flows().Wait(ctx, run.ID)
	if err != nil {
		return err
	}
	if err := c.won(ctx, run, flow); err != nil {
		return err
	}
	if err := c.standing(ctx, run); err != nil {
		return err
	}
	return c.lost(ctx, run)
}

// standing tells how far each runner is. It may be asked while they run, too.
func (c *course) standing(ctx context.Context, run *flowfabric.FlowRun) error {
	c.Say("Each runner streams its answer and keeps its standing in the summary document of the stream.")
	for _, runner := range Runners {
		summary, err := c.client.Streams().Summary(ctx, run.Members[runner])
		if code := flowfabric.CodeOf(err); code == "attempt_not_found" || code == "summary_not_found" {
			c.Show("%s has not begun", runner)
			continue
		}
		if err != nil {
			return err
		}
		var standing Standing
		if err := json.Unmarshal(summary.Document, &standing); err != nil {
			return err
		}
		c.Show("%s: %s, %d words", runner, standing.State, standing.Words)
	}
	return nil
}

// race is the graph. Whatever comes first has one name for the node that chooses.
func (c *course) race(question string) flowfabric.Flow {
	choose := Choose.Node(chosen, flowfabric.None{}).AfterAny(Runners...).CancelRemaining()
	f := flowfabric.Flow{Kind: "race", Output: chosen, Defaults: flowfabric.Node{SubmitOptions: flowfabric.SubmitOptions{Lane: c.Name}}}
	for _, runner := range Runners {
		choose = choose.PassAs(runner, answer)
		f.Nodes = append(f.Nodes, Ask.Node(runner, Question{runner, question}))
	}
	f.Nodes = append(f.Nodes, choose)
	return f
}

// won tells who was first.
func (c *course) won(ctx context.Context, run *flowfabric.FlowRun, flow *flowfabric.FlowView) error {
	result, err := c.client.Executions().Result(ctx, run.Members[chosen])
	if err != nil {
		return err
	}
	var best Answer
	if err := result.Decode(&best); err != nil {
		return err
	}
	c.Say("The first good answer is that of %s, in %d tokens: %s", best.Runner, best.Tokens, best.Text)
	c.Show("the flow is %s: who lost a race has not failed it", flow.State)
	return nil
}

// lost tells what became of the others.
func (c *course) lost(ctx context.Context, run *flowfabric.FlowRun) error {
	c.Say("The others end where they are.")
	var losers []string
	for _, runner := range Runners {
		x, err := c.client.Get(ctx, run.Members[runner])
		if err != nil {
			return err
		}
		switch {
		case x.Cancellation != nil:
			c.Show("%s is %s by the %s: %s", runner, x.Status, x.Cancellation.Source, x.Reason)
			if !x.StartedAt.IsZero() {
				losers = append(losers, runner)
			}
		case x.Failure != nil:
			c.Show("%s is %s: %s", runner, x.Status, x.Failure.Message)
		default:
			c.Show("%s is %s", runner, x.Status)
		}
	}
	c.Say("Handlers of cancelled work are told by their contexts.")
	within, cancel := context.WithTimeout(ctx, 5*time.Second) // one that lost before its handler began tells nothing
	defer cancel()
	for len(losers) > 0 {
		select {
		case told := <-c.ended:
			if told.stopped && slices.Contains(losers, told.runner) {
				c.Show("%s stops thinking: %s", told.runner, told.why)
			}
			losers = slices.DeleteFunc(losers, func(runner string) bool { return runner == told.runner })
		case <-within.Done():
			return ctx.Err()
		}
	}
	return nil
}
