package secrets

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// bench is an engine with work that waits in two namespaces, and every token that was issued for it.
type bench struct {
	t     *testing.T
	e     *engine.Engine
	store *counted
	all   []target
}

// target is a waitpoint or a link, with the tokens that open it: one of each key.
type target struct {
	name      string
	execution base.ID
	waitpoint base.UUID
	link      base.UUID // zero: it is the waitpoint
	tokens    []keyring.Token
}

var (
	client   = engine.Caller{Principal: "me", Actor: "client"}
	operator = engine.Caller{Principal: "op", Actor: "operator"}
	stranger = engine.Caller{Principal: "missing", Actor: "client", Namespaces: []string{"nowhere"}}
)

// counted writes down how a store is called.
type counted struct {
	store.Store
	mu    sync.Mutex
	calls []string
}

func (c *counted) note(call string, w *store.Want) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w != nil {
		call += fmt.Sprintf(" %d executions, %d docs, %d dossiers, %d scans", len(w.Executions), len(w.Docs), len(w.Owned), len(w.Scans))
	}
	c.calls = append(c.calls, call)
}

// since runs something and tells the calls that it made.
func (c *counted) since(run func()) []string {
	c.mu.Lock()
	c.calls = nil
	c.mu.Unlock()
	run()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *counted) Read(ctx context.Context, w store.Want) (*store.Loaded, error) {
	c.note("read", &w)
	return c.Store.Read(ctx, w)
}

func (c *counted) Begin(ctx context.Context, w store.Want) (store.Tx, *store.Loaded, error) {
	c.note("begin", &w)
	tx, loaded, err := c.Store.Begin(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	return &countedTx{Tx: tx, c: c}, loaded, nil
}

type countedTx struct {
	store.Tx
	c *counted
}

func (t *countedTx) Load(ctx context.Context, w store.Want) (*store.Loaded, error) {
	t.c.note("load", &w)
	return t.Tx.Load(ctx, w)
}

func (t *countedTx) Commit(ctx context.Context, ch *store.Changes) error {
	t.c.note("commit", nil)
	return t.Tx.Commit(ctx, ch)
}

func onBenches(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (store.Store, error){
		"sqlite": func(t *testing.T) (store.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "app.db"), sqlite.Config{UnsafeDurability: true})
		},
		"postgres": func(t *testing.T) (store.Store, error) {
			return cluster.Again(t).Open(t.Context(), postgres.Config{PoolSize: 4, UnsafeDurability: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, store: &counted{Store: s}}
			b.e, err = engine.Open(t.Context(), b.store, engine.Config{NoTimers: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx := context.WithoutCancel(t.Context())
				if err := b.e.Close(ctx); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			must[keyring.SeedOutcome](t)(b.e.SeedSigningKey(t.Context(), operator, "k1", firstSecret, engine.AdminAction{}))
			test(t, b)
		})
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// running is an execution under a lease.
func (b *bench) running(namespace string) (base.GivenID, core.Fence) {
	b.t.Helper()
	id := must[engine.SubmitAnswer](b.t)(b.e.Submit(b.t.Context(), client, core.Submission{Namespace: namespace, Lane: "l", Kind: "k"})).ID.Given()
	task := must[engine.Task](b.t)(b.e.OperatorClaim(b.t.Context(), operator, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "i", TTL: base.Hour}))
	x := task.Execution
	return id, core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
}

// suspend waits at two waitpoints whose keys are the same in every execution: nothing but ids and namespaces tells them apart.
func (b *bench) suspend(namespace, name string) {
	b.t.Helper()
	id, f := b.running(namespace)
	one, two := "a", "b"
	answer := must[engine.SuspendAnswer](b.t)(b.e.Suspend(b.t.Context(), client, id, core.SuspendCommand{
		Fence: f, Waitpoints: []core.Binding{{Key: &one}, {Key: &two}},
		Condition: &condition.Condition{Kind: condition.Count, N: 100, CountKind: condition.CountDistinctSignals, Waitpoints: []string{one, two}},
	}))
	for i, w := range answer.Waitpoints {
		b.all = append(b.all, target{name: name + " waitpoint " + w.Key, execution: w.ExecutionID, waitpoint: w.ID, tokens: []keyring.Token{answer.Tokens[i]}})
		link := must[engine.IssuedLink](b.t)(b.e.CreateLink(b.t.Context(), operator, core.CreateLinkCommand{WaitpointID: w.ID, Approver: "ann"}, engine.Operator{}))
		b.all = append(b.all, target{name: name + " link at " + w.Key, execution: w.ExecutionID, waitpoint: w.ID, link: link.ID, tokens: []keyring.Token{link.Token}})
	}
}

// again issues every token once more, under the key that is active now.
func (b *bench) again() {
	b.t.Helper()
	for i := range b.all {
		x := &b.all[i]
		if x.link.IsZero() {
			got := must[engine.Issued](b.t)(b.e.ReadToken(b.t.Context(), operator, x.execution.Given(), x.waitpoint))
			x.tokens = append(x.tokens, got.Token)
			continue
		}
		got := must[engine.IssuedLink](b.t)(b.e.ReadLink(b.t.Context(), operator, x.link))
		x.tokens = append(x.tokens, got.Token)
	}
}

// use sends a token to a target.
func (b *bench) use(x *target, token keyring.Token) error {
	if x.link.IsZero() {
		_, err := b.e.Signal(b.t.Context(), stranger, nil, token, core.SignalCommand{WaitpointID: x.waitpoint, Name: "go"})
		return err
	}
	_, err := b.e.Decide(b.t.Context(), stranger, token, core.DecideCommand{LinkID: x.link, Decision: "approve"})
	return err
}

// refusal is the one answer to whatever is not good for a target.
func (x *target) refusal() base.Code {
	if x.link.IsZero() {
		return base.CodeInvalidToken
	}
	return base.CodeLinkNotFound
}

func TestWI1_W33_every_token_opens_its_own_target_and_no_other_of_all_that_there_are(t *testing.T) {
	t.Parallel()
	onBenches(t, func(t *testing.T, b *bench) {
		b.suspend("n1", "first")
		b.suspend("n1", "second")
		b.suspend("n2", "third")
		must[keyring.RotateOutcome](t)(b.e.RotateSigningKey(t.Context(), operator, engine.Rotation{Kid: "k2"}, engine.AdminAction{}))
		b.again()
		tried := 0
		for i := range b.all {
			for j := range b.all {
				for n, token := range b.all[j].tokens {
					swapped := keyring.TokenOf("k" + fmt.Sprint(2-n) + token.Reveal()[2:]) // of the other kid
					for what, wrong := range map[string]keyring.Token{"its token": token, "its token under the other kid": swapped} {
						if i == j && wrong.Reveal() == token.Reveal() {
							continue
						}
						tried++
						if code := base.CodeOf(b.use(&b.all[i], wrong)); code != b.all[i].refusal() {
							t.Errorf("of the %s %s %d is answered %q by the %s", b.all[j].name, what, n, code, b.all[i].name)
						}
					}
				}
			}
		}
		for i := range b.all {
			for n, token := range b.all[i].tokens {
				if err := b.use(&b.all[i], token); err != nil {
					t.Errorf("the %s does not take its own token %d: %v", b.all[i].name, n, err)
				}
			}
		}
		t.Logf("%d tokens of others", tried)
	})
}

// mutated is a text near a token: still of its form most of the time.
func mutated(random *rand.Rand, token string) string {
	text := []byte(token)
	digits := strings.IndexByte(token, ':') + 1
	for range 1 + random.IntN(3) {
		at := digits + random.IntN(len(text)-digits)
		switch random.IntN(20) {
		case 0: // any byte anywhere
			text[random.IntN(len(text))] = byte(random.IntN(256))
		case 1: // two change places
			other := digits + random.IntN(len(text)-digits)
			text[at], text[other] = text[other], text[at]
		case 2:
			text = slices.Delete(text, at, at+1)
			text = append(text, "0123456789abcdef"[random.IntN(16)])
		default:
			text[at] = "0123456789abcdef"[random.IntN(16)]
		}
	}
	return string(text)
}

func TestWI1_a_million_mutated_tokens_are_refused(t *testing.T) {
	t.Parallel()
	fields := keyring.WaitpointFields{Namespace: "n", ExecutionID: base.IDOf(base.UUID{1}), WaitpointID: base.UUID{2}, Key: "a", MintedAt: 1_767_225_600_000}
	seed := must[keyring.SeedCommand](t)(keyring.NewSeed("k1", firstSecret))
	var set keyring.KeySet
	must[keyring.SeedOutcome](t)(set.Seed(&core.Effects{Now: 1}, keyring.Sealing{}, seed))
	ring := must[*keyring.Ring](t)(set.Open(keyring.MasterKey{}))
	token := must[keyring.Token](t)(ring.Mint(fields)).Reveal()
	random := rand.New(rand.NewPCG(1, 2))
	formed := 0
	for n := 0; n < 1_000_000; {
		wrong := mutated(random, token)
		if wrong == token {
			continue
		}
		n++
		fault, err := ring.Verify(2, keyring.TokenOf(wrong), fields)
		if base.CodeOf(err) != base.CodeInvalidToken {
			t.Fatalf("mutant %d is answered %v", n, err)
		}
		if fault == keyring.TokenMismatch {
			formed++
		}
	}
	if formed < 500_000 {
		t.Errorf("only %d had the form of a token", formed)
	}
	if fault, err := ring.Verify(2, keyring.TokenOf(token), fields); err != nil {
		t.Errorf("the token itself: %v %v", fault, err)
	}
}

func TestWI1_mutated_tokens_are_refused_by_the_engine_and_leave_nothing(t *testing.T) {
	t.Parallel()
	onBenches(t, func(t *testing.T, b *bench) {
		b.suspend("n1", "first")
		before := b.told()
		random := rand.New(rand.NewPCG(3, 4))
		for n := range 400 {
			x := &b.all[n%len(b.all)]
			token := x.tokens[0].Reveal()
			wrong := mutated(random, token)
			if wrong == token {
				continue
			}
			if code := base.CodeOf(b.use(x, keyring.TokenOf(wrong))); code != x.refusal() {
				t.Fatalf("mutant %d is answered %q by the %s", n, code, x.name)
			}
		}
		if after := b.told(); after != before {
			t.Errorf("W34: what was told went from %s to %s", before, after)
		}
	})
}

// told is how many events there are, and where the log ends.
func (b *bench) told() string {
	b.t.Helper()
	page := must[engine.EventPage](b.t)(b.e.ReadEvents(b.t.Context(), client, engine.EventsRequest{After: "start", Limit: 1000}))
	return fmt.Sprint(len(page.Events), " ", page.Next)
}

func TestWI5_a_token_that_is_not_good_costs_the_same_whatever_it_is_sent_for(t *testing.T) {
	t.Parallel()
	onBenches(t, func(t *testing.T, b *bench) {
		b.suspend("n1", "of the token")
		good := b.all[0].tokens[0]
		forged := keyring.TokenOf("k1:" + strings.Repeat("5", 64))
		targets := b.everyState()
		var first []string
		for name, waitpoint := range targets {
			for what, token := range map[string]keyring.Token{"of another": good, "forged": forged} {
				calls := b.store.since(func() {
					_, err := b.e.Signal(t.Context(), stranger, nil, token, core.SignalCommand{WaitpointID: waitpoint, Name: "go"})
					if base.CodeOf(err) != base.CodeInvalidToken || err.Error() != keyring.InvalidToken().Error() {
						t.Errorf("%s, a token %s: %v", name, what, err)
					}
				})
				if first == nil {
					first = calls
				}
				if !slices.Equal(calls, first) {
					t.Errorf("%s, a token %s costs %q, another %q", name, what, calls, first)
				}
			}
		}
		if len(first) == 0 {
			t.Error("the store was not asked")
		}
	})
}

// everyState is a waitpoint in each state in which one can be, and one that never was.
func (b *bench) everyState() map[string]base.UUID {
	b.t.Helper()
	ctx := b.t.Context()
	all := map[string]base.UUID{"missing": {7}}
	for _, state := range []string{"pending", "closed", "terminal", "foreign"} {
		id, f := b.running(map[bool]string{true: "n2", false: "n1"}[state == "foreign"])
		w := must[engine.Issued](b.t)(b.e.CreateWaitpoint(ctx, client, id, core.CreateWaitpointCommand{Fence: f, Key: "a"}))
		all[state] = w.ID
		switch state {
		case "closed":
			must[bool](b.t)(b.e.CloseWaitpoint(ctx, operator, w.ID, nil, engine.Operator{}))
		case "terminal":
			must[core.CompleteAnswer](b.t)(b.e.Complete(ctx, client, id, f, nil))
		}
	}
	b.suspend("n1", "active")
	all["active"] = b.all[len(b.all)-1].waitpoint
	return all
}

// Allocations stand for work: a MAC that is left out shows in them, whatever the machine does besides.
func TestWI5_a_verification_does_the_same_work_whether_key_and_row_are_there_or_not(t *testing.T) {
	var set keyring.KeySet
	seed := must[keyring.SeedCommand](t)(keyring.NewSeed("k1", firstSecret))
	must[keyring.SeedOutcome](t)(set.Seed(&core.Effects{Now: 1}, keyring.Sealing{}, seed))
	ring := must[*keyring.Ring](t)(set.Open(keyring.MasterKey{}))
	row := keyring.WaitpointFields{Namespace: "default", ExecutionID: base.IDOf(base.UUID{1}), WaitpointID: base.UUID{2}, Key: "placeholder", MintedAt: 1_767_225_600_000}
	digest := ":" + strings.Repeat("5", 64)
	work := map[string]float64{}
	for name, c := range map[string]struct {
		kid string
		row keyring.TokenFields
	}{"a wrong digest": {"k1", row}, "no row": {"k1", nil}, "no key": {"k9", row}, "neither": {"k9", nil}} {
		token := keyring.TokenOf(c.kid + digest)
		work[name] = testing.AllocsPerRun(200, func() { _, _ = ring.Verify(2, token, c.row) })
	}
	least, most := work["no row"], work["no row"]
	for _, n := range work {
		least, most = min(least, n), max(most, n)
	}
	if least < 10 || most-least > 2 { // the placeholder itself may cost one or two
		t.Errorf("allocations differ: %v", work)
	}
}
