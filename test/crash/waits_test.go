package crash_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
)

// What a victim of these stories does: it suspends work, or it signals what waits.
const (
	variableDeed    = "FF_CRASH_DEED"
	variableTokens  = "FF_CRASH_TOKENS"
	waitsOfVictim   = 8
	signalsOfVictim = 5
)

var asks flowfabric.Kind[string, string] = "asks"

// newAsker has a handler that waits for a signal. told gets every waitpoint, once.
func newAsker(client *flowfabric.Client, told func(key string, w flowfabric.Waitpoint)) *flowfabric.Worker {
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 8, LeaseTTL: leaseTTL})
	flowfabric.Handle(worker, asks, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
		answer, err := flowfabric.AwaitSignal[string](ctx, t, "go", flowfabric.WaitOptions{Notify: func(_ context.Context, w flowfabric.Waitpoint) error {
			told(in, w)
			return nil
		}})
		return in + " " + answer, err
	})
	return worker
}

// suspends has work wait, and says which waitpoints there are and what is suspended, until it is killed.
func suspends(store string) error {
	ctx := context.Background()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		return err
	}
	worker := newAsker(client, func(key string, w flowfabric.Waitpoint) { fmt.Println("token", key, w.ID, w.Token.Reveal()) })
	go func() { _ = worker.Run(ctx) }()
	for n := range waitsOfVictim {
		key := fmt.Sprintf("w%d", n)
		run, err := asks.Submit(ctx, client, key, flowfabric.SubmitOptions{IdempotencyKey: key})
		if err != nil {
			return err
		}
		for {
			x, err := client.Get(ctx, run.ID())
			if err != nil {
				return err
			}
			if x.Status == flowfabric.StatusSuspended {
				break
			}
			<-time.After(time.Millisecond)
		}
		fmt.Println("suspended", key, run.ID())
	}
	select {}
}

// signals answers what waits, and says which signals were acknowledged, until it is killed.
func signals(store, tokens string) error {
	ctx := context.Background()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(tokens, "\n") {
		part := strings.Fields(line)
		receipt, err := client.Signal(ctx, signalOf(part[0], part[1], part[2]))
		if err != nil {
			return err
		}
		fmt.Println("signalled", part[0], receipt.SignalID)
	}
	select {}
}

func signalOf(key, waitpoint, token string) flowfabric.Signal {
	return flowfabric.Signal{
		WaitpointID: waitpoint, Token: flowfabric.TokenOf(token), Name: "go", IdempotencyKey: "answer to " + key,
		Payload: flowfabric.Text("yes to " + key),
	}
}

// until runs a victim until it has said so many lines that begin with a word, kills it without a warning, and returns what it said.
func until(t *testing.T, word string, enough int, environment ...string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said [][]string
	lines := bufio.NewScanner(out)
	for n := 0; n < enough && lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[0] == "error" {
			t.Errorf("a victim says %q", lines.Text())
		}
		if fields[0] == word {
			n++
		}
		said = append(said, fields)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return said
}

func TestI1_I11_what_is_suspended_and_what_is_signalled_outlives_kill_9_on_sqlite(t *testing.T) {
	t.Parallel()
	waitsOutlive(t, "sqlite:"+filepath.Join(t.TempDir(), "app.db"))
}

func TestI1_I11_what_is_suspended_and_what_is_signalled_outlives_kill_9_on_postgres(t *testing.T) {
	t.Parallel()
	waitsOutlive(t, cluster.Database(t))
}

func waitsOutlive(t *testing.T, store string) {
	t.Helper()
	ids, tokens := map[string]flowfabric.ID{}, map[string][]string{}
	for _, line := range until(t, "suspended", waitsOfVictim, variableStore+"="+store, variableDeed+"=suspend") {
		switch line[0] {
		case "suspended":
			ids[line[1]] = flowfabric.ID(line[2])
		case "token":
			tokens[line[1]] = line[1:]
		}
	}
	var all []string
	for n := range waitsOfVictim {
		all = append(all, strings.Join(tokens[fmt.Sprintf("w%d", n)], " "))
	}
	accepted := map[string]string{}
	for _, line := range until(t, "signalled", signalsOfVictim, variableStore+"="+store, variableDeed+"=signal", variableTokens+"="+strings.Join(all, "\n")) {
		accepted[line[1]] = line[2]
	}
	if len(ids) != waitsOfVictim || len(accepted) != signalsOfVictim {
		t.Fatalf("%d are suspended, %d signals were acknowledged", len(ids), len(accepted))
	}
	finishWaits(t, store, ids, tokens, accepted)
}

// finishWaits signals everything once more, works it off, and looks at what was told.
func finishWaits(t *testing.T, store string, ids map[string]flowfabric.ID, tokens map[string][]string, accepted map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	for key, part := range tokens {
		receipt, err := client.Signal(ctx, signalOf(part[0], part[1], part[2]))
		if first, known := accepted[key]; err != nil || known && (receipt.SignalID != first || receipt.Outcome != "duplicate") {
			t.Errorf("%s: %+v, the first was %q: %v", key, receipt, first, err) // I1, WI11
		}
	}
	workCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	worker := newAsker(client, func(key string, _ flowfabric.Waitpoint) { t.Errorf("%s asks a second time", key) })
	go func() { ended <- worker.Run(workCtx) }()
	for key, id := range ids {
		x, err := client.Wait(ctx, id)
		if err != nil || x.Status != flowfabric.StatusSucceeded || !strings.Contains(string(x.Result.Data), key+" yes to "+key) {
			t.Errorf("%s: %+v, %v", key, x, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	told := toldOf(ctx, t, client)
	for key, id := range ids {
		for _, kind := range []string{"execution.suspended", "signal.accepted", "execution.resumed", "execution.completed"} {
			if n := told[id][kind]; n != 1 {
				t.Errorf("I11, I6: %s: %d times %s", key, n, kind)
			}
		}
	}
}

// toldOf counts the events of every execution by their kind.
func toldOf(ctx context.Context, t *testing.T, client *flowfabric.Client) map[flowfabric.ID]map[string]int {
	t.Helper()
	told := map[flowfabric.ID]map[string]int{}
	for after := api.FromStart; ; {
		page, err := client.Events().Read(ctx, ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range page.Events {
			if told[ev.ExecutionID] == nil {
				told[ev.ExecutionID] = map[string]int{}
			}
			told[ev.ExecutionID][ev.Kind]++
		}
		if after = page.Next; page.AtEnd {
			return told
		}
	}
}
