package crash_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// Victims are this test binary, started again as programs of their own.
const (
	variableStore = "FF_CRASH_STORE"
	variableKeys  = "FF_CRASH_KEYS"
	keysOfVictim  = 400
	leaseTTL      = time.Second
)

var work flowfabric.Kind[string, string] = "work"

// victim submits work under keys and works it off, and says on its output which submits were acknowledged, until it is killed.
func victim(store, prefix string) error {
	ctx := context.Background()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		return err
	}
	if err := putLimits(ctx, client); err != nil {
		return err
	}
	worker := newWorker(client)
	go func() { _ = worker.Run(ctx) }()
	var wg sync.WaitGroup
	for lane := range 8 {
		wg.Go(func() {
			for i := lane; i < keysOfVictim; i += 8 {
				key := fmt.Sprintf("%s-%d", prefix, i)
				run, err := work.Submit(ctx, client, key, limited(key))
				if err != nil {
					fmt.Println("error", key, err)
					return
				}
				fmt.Println("acknowledged", key, run.ID())
			}
		})
	}
	wg.Wait()
	select {}
}

// newWorker has a handler of two steps and a report between them.
func newWorker(client *flowfabric.Client) *flowfabric.Worker {
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 16, LeaseTTL: leaseTTL})
	flowfabric.Handle(worker, work, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
		first, err := flowfabric.Step(ctx, t, "first", func(context.Context) (string, error) { return in + "!", nil })
		if err != nil {
			return "", err
		}
		if err := report(ctx, t); err != nil {
			return "", err
		}
		return flowfabric.Step(ctx, t, "second", func(context.Context) (string, error) { return first + "?", nil })
	})
	return worker
}

// process is a running victim.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// book is what victims were told: the id of every acknowledged submit, by key.
type book struct {
	mu     sync.Mutex
	ids    map[string]string
	random *rand.Rand // how long a victim lives
}

func newBook(t *testing.T) *book {
	t.Helper()
	return &book{ids: map[string]string{}, random: testseed.New(t)}
}

// start runs a victim and writes down what it says.
func start(t *testing.T, store, prefix string, b *book) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variableStore+"="+store, variableKeys+"="+prefix)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			b.note(t, lines.Text())
		}
	}()
	return p
}

// note remembers an acknowledged submit. The same key always names the same execution (I8).
func (b *book) note(t *testing.T, line string) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "acknowledged" {
		t.Errorf("a victim says %q", line)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, known := b.ids[fields[1]]; known && old != fields[2] {
		t.Errorf("key %s names %s, then %s", fields[1], old, fields[2])
	}
	b.ids[fields[1]] = fields[2]
}

func (b *book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ids)
}

// killSoon lets the victim get some more submits acknowledged, then kills it without a word.
func (p *process) killSoon(t *testing.T, b *book) {
	t.Helper()
	want := b.size() + 20 + b.random.IntN(60)
	for end := time.Now().Add(20 * time.Second); b.size() < want && b.size() < keysOfVictim && time.Now().Before(end); {
		select {
		case <-p.done:
			t.Fatal("a victim ended by itself")
		case <-time.After(time.Millisecond):
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.cmd.Wait()
}
