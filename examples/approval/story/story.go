// Package story is the approval example: a release waits for two of three people. One opens the page of a link and decides there, one
// decides as an operator; a forged link is refused; and a release that is not decided in time fails. The example's own program tells it, and so
// does flowfabric demo.
package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Approval is the story.
var Approval = stage.Story{Name: "approval", Tell: tell}

// The time that people have: two days, and a moment for the release that is not decided.
const (
	patient = 48 * time.Hour
	hasty   = time.Second
)

// office is where the story plays: an engine, a server with the pages, and the post.
type office struct {
	*stage.Stage
	client  *flowfabric.Client
	address string // of the server
	browser browser
	post    mailbox
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	address, stopServing, err := s.Served(ctx, client, flowfabrichttp.Config{})
	if err != nil {
		return err
	}
	o := &office{Stage: s, client: client, address: address, browser: browser{&http.Client{Transport: &http.Transport{}}}}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Deploy, o.deploy)
	stopWorking := stage.Start(ctx, w)
	for _, chapter := range []func(context.Context) error{o.release, o.deadline} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	o.browser.http.CloseIdleConnections()
	return errors.Join(err, stopWorking(), stopServing())
}

// submit hands in a release and waits until it waits for people.
func (o *office) submit(ctx context.Context, in Release) (*flowfabric.Run[string], error) {
	run, err := Deploy.Submit(ctx, o.client, in, flowfabric.SubmitOptions{Lane: o.Name, Tags: map[string]string{"version": in.Version}})
	if err != nil {
		return nil, err
	}
	return run, stage.Await(ctx, o.client, run.ID(), "execution.suspended")
}

// release goes live when two of three people have said so.
func (o *office) release(ctx context.Context) error {
	run, err := o.submit(ctx, Release{Version: "1.4", Deadline: patient})
	if err != nil {
		return err
	}
	o.Say("Release 1.4 is to go live. Two of three people must agree, within two days. Each gets a link:")
	for _, person := range people {
		o.Show("%s: %s", person, o.post.of(person))
	}
	if err := o.standing(ctx, run.ID()); err != nil {
		return err
	}
	for _, chapter := range []func(context.Context, *flowfabric.Run[string]) error{o.look, o.forge, o.click, o.console, o.late} {
		if err := chapter(ctx, run); err != nil {
			return err
		}
	}
	o.Say("What happened to the release:")
	_, err = o.ShowEvents(ctx, o.client, run.ID(), api.FromStart)
	return err
}

// standing tells how the release stands: no worker has it while people think.
func (o *office) standing(ctx context.Context, id flowfabric.ID) error {
	for waiting, err := range o.client.Waitpoints().Inbox(ctx, ops.SuspendedQuery{Lane: o.Name}) {
		if err != nil {
			return err
		}
		if waiting.Execution.ID == id {
			o.Show("%s is %s (%s), %d of %d have decided", id, waiting.Execution.Status, waiting.ReasonCode, len(waiting.Decisions), waiting.Needed)
		}
	}
	return nil
}

// look opens a page. Looking never decides, however often somebody or some scanner of mail does.
func (o *office) look(ctx context.Context, _ *flowfabric.Run[string]) error {
	var seen []string
	for range 3 {
		lines, status, err := o.browser.open(ctx, o.post.of(people[0]))
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("the page of a link answers %d", status)
		}
		seen = lines
	}
	o.Say("A mail scanner opens Ana's link three times. It sees what Ana will see, and decides nothing:")
	for _, line := range seen {
		o.Show("| %s", line)
	}
	return nil
}

// forge changes one digit of a token.
func (o *office) forge(ctx context.Context, _ *flowfabric.Run[string]) error {
	address := o.post.of(people[2])
	last, forged := address[len(address)-1:], "0"
	if last == forged {
		forged = "1"
	}
	code, err := o.browser.refused(ctx, strings.TrimSuffix(address, last)+forged)
	if err != nil {
		return err
	}
	o.Say("Somebody guesses at Eve's link and is wrong by one digit: %s. The answer is the same as for a link that never was.", code)
	return nil
}

// click decides on the page, twice.
func (o *office) click(ctx context.Context, run *flowfabric.Run[string]) error {
	if _, _, err := o.browser.press(ctx, o.post.of(people[0]), "approve", "looks good"); err != nil {
		return err
	}
	lines, _, err := o.browser.press(ctx, o.post.of(people[0]), "reject", "or not?")
	if err != nil {
		return err
	}
	o.Say("Ana presses approve, and then reject. A link decides once; the page tells what it was:")
	for _, line := range lines {
		o.Show("| %s", line)
	}
	return o.standing(ctx, run.ID())
}

// console decides as an operator, without a link, and the release goes live.
func (o *office) console(ctx context.Context, run *flowfabric.Run[string]) error {
	receipt, err := o.client.Operate().Approve(ctx, run.ID(), ops.Approve{Comment: "go"})
	if err != nil {
		return err
	}
	o.Say("An operator approves at the console, without a link: %s.", receipt.Effect)
	result, err := run.Result(ctx)
	if err != nil {
		return err
	}
	o.Show("%s", result)
	return nil
}

// late is a person who comes when all is decided.
func (o *office) late(ctx context.Context, _ *flowfabric.Run[string]) error {
	code, err := o.browser.refused(ctx, o.post.of(people[1]))
	if err != nil {
		return err
	}
	o.Say("Ben is late, and his link says so: %s.", code)
	return nil
}

// deadline is a release that is not decided.
func (o *office) deadline(ctx context.Context) error {
	run, err := o.submit(ctx, Release{Version: "1.5", Deadline: hasty})
	if err != nil {
		return err
	}
	o.Say("Release 1.5 has a deadline of %s, and everybody is at lunch: %s.", hasty, run.ID())
	x, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	if x.Status != flowfabric.StatusFailed {
		return fmt.Errorf("it is %s", x.Status)
	}
	o.Show("it %s: %s", x.Status, x.Reason)
	return nil
}

// absolute is an address that a browser can open: an engine in this process knows no server, so its links are paths.
func (o *office) absolute(address string) string {
	if strings.HasPrefix(address, "/") {
		return o.address + address
	}
	return address
}

// mailbox has the newest link of each person.
type mailbox struct {
	mu   sync.Mutex
	mail map[string]string
}

func (m *mailbox) put(person, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mail == nil {
		m.mail = map[string]string{}
	}
	m.mail[person] = address
}

func (m *mailbox) of(person string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mail[person]
}
