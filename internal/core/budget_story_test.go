package core

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// bank keeps budgets, and executions that are charged to them, as a store would, and holds them to the invariants after every command.
// Each command has books of its own, as in a transaction.
type bank struct {
	t       tester
	now     base.Time
	minted  uint64
	stored  map[base.UUID][]byte
	runs    []*story
	ledger  map[Spend]int64 // amounts apart
	epochs  []EpochRecord
	events  []Event
	freed   []base.UUID
	cancels []CancelRunning
	known   map[string]*UsageReceipt
	loose   map[Spend]int64 // booked without an execution, in the current epoch
	books   *Books
}

func openBank(t tester) *bank {
	return &bank{
		t: t, now: storyStart, stored: map[base.UUID][]byte{}, ledger: map[Spend]int64{},
		known: map[string]*UsageReceipt{}, loose: map[Spend]int64{},
	}
}

func (k *bank) mint() base.UUID {
	k.minted++
	u := base.UUID{0: 2}
	binary.BigEndian.PutUint64(u[8:], k.minted)
	return u
}

// transact runs a command on fresh books and keeps what came of it.
func (k *bank) transact(command func()) {
	k.t.Helper()
	k.books = NewBooks()
	for id, text := range k.stored {
		budget, err := DecodeBudget(text)
		if err != nil || budget.ID != id {
			k.t.Fatalf("stored budget: %v", err)
		}
		k.books.Add(budget)
	}
	told := make([]int, len(k.runs))
	for i, s := range k.runs {
		s.books, s.now, told[i] = k.books, k.now, len(s.events)
	}
	command()
	for i, s := range k.runs {
		if i < len(told) {
			k.events = append(k.events, s.events[told[i]:]...)
		}
	}
	k.keep()
	k.audit()
}

func (k *bank) keep() {
	for _, budget := range k.books.Changed() {
		k.stored[budget.ID] = budget.Encode()
	}
	for _, id := range k.books.Deleted() {
		delete(k.stored, id)
	}
	for _, spend := range k.books.Spends() {
		amount := spend.Amount
		spend.Amount = 0
		k.ledger[spend] += amount
	}
	k.epochs = append(k.epochs, k.books.Epochs()...)
	k.freed, k.cancels = k.books.Freed(), k.books.CancelRunning()
}

// do runs a command of no execution, which leaves no trace when it is refused.
func (k *bank) do(command func(fx *Effects) error) (err error) {
	k.t.Helper()
	k.transact(func() {
		settled := &Effects{Now: k.now, Actor: EngineActor()}
		k.books.SettleResets(settled)
		fx := &Effects{Now: k.now, Actor: Actor{Type: "operator", ID: "ann"}, Books: k.books}
		mark := k.books.Mark()
		if err = command(fx); err != nil {
			k.books.Back(mark)
			fx.Events = nil
		}
		k.events = append(append(k.events, settled.Events...), fx.Events...)
	})
	return err
}

// define reads a definition.
func define(t tester, text string) *BudgetDefinition {
	t.Helper()
	var d BudgetDefinition
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("definition %s: %v", text, err)
	}
	if err := d.Normalize(); err != nil {
		t.Fatalf("definition %s: %v", text, err)
	}
	return &d
}

// open makes a budget, below the one that is named if any is.
func (k *bank) open(text string, parent ...base.UUID) base.UUID {
	k.t.Helper()
	d, id := define(k.t, text), k.mint()
	err := k.do(func(fx *Effects) error {
		var above *Budget
		if len(parent) > 0 {
			above = k.books.Get(parent[0])
		}
		b, err := NewBudget(fx, base.DefaultNamespace, d, id, above)
		if err == nil {
			k.books.Create(b)
		}
		return err
	})
	if err != nil {
		k.t.Fatalf("open %s: %v", text, err)
	}
	return id
}

func (k *bank) budget(id base.UUID) *Budget {
	k.t.Helper()
	b, err := DecodeBudget(k.stored[id])
	if err != nil {
		k.t.Fatalf("budget %s: %v", id, err)
	}
	return b
}

// want compares used, reserved and overrun of a dimension.
func (k *bank) want(id base.UUID, dimension string, used, reserved, overrun int64) {
	k.t.Helper()
	d := k.budget(id).Dimensions[dimension]
	if got := [3]int64{d.Used, d.Reserved, d.Overrun}; got != [3]int64{used, reserved, overrun} {
		k.t.Fatalf("%s: used, reserved, overrun are %v, want %v", dimension, got, [3]int64{used, reserved, overrun})
	}
}

// submit makes an execution; nothing is charged before it is claimed.
func (k *bank) submit(policy string, edits ...func(*Submission)) *story {
	k.t.Helper()
	s := begin(k.t, policy, append(edits, func(*Submission) {})...)
	s.x.ID = base.IDOf(k.mint())
	s.seen = s.x.Clone()
	s.now = k.now
	k.runs = append(k.runs, s)
	return s
}

// claim admits and acquires; the refusal if there is no room.
func (k *bank) claim(s *story, set ...base.UUID) (refusal *Refusal) {
	k.t.Helper()
	k.transact(func() {
		s.settle()
		_ = s.do(func(fx *Effects) error {
			if refusal = fx.Books.Admits(s.x, set, s.x.Policy.Estimate, fx.Now); refusal != nil {
				return nil
			}
			if len(set) > 0 {
				fx.Books.Reserve(fx, s.x, set, s.x.Policy.Estimate)
			}
			s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-1", TTL: base.Day})
			return nil
		})
	})
	return refusal
}

// running is an execution that was admitted under the budgets.
func (k *bank) running(policy string, set ...base.UUID) *story {
	k.t.Helper()
	s := k.submit(policy)
	if refusal := k.claim(s, set...); refusal != nil {
		k.t.Fatalf("refused by %s: %s", refusal.Key, refusal.Detail)
	}
	return s
}

// on runs commands of one execution.
func (k *bank) on(s *story, commands func()) {
	k.t.Helper()
	k.transact(commands)
}

// pass moves the clock on and sweeps everything.
func (k *bank) pass(ms base.Millis) {
	k.t.Helper()
	k.now = k.now.Add(ms)
	for _, s := range k.runs {
		k.on(s, s.settle)
	}
}

func spent(c *UsageCommand)                       { c.AlreadySpent = true }
func under(key string) func(*UsageCommand)        { return func(c *UsageCommand) { c.DedupKey = key } }
func amounts(of string, n int64) map[string]int64 { return map[string]int64{of: n} }

// report reports usage under the fence, remembering receipts.
func (k *bank) report(s *story, f Fence, usage map[string]int64, edits ...func(*UsageCommand)) (o UsageOutcome, err error) {
	k.t.Helper()
	c := UsageCommand{Fence: f, Usage: usage}
	for _, edit := range edits {
		edit(&c)
	}
	key := s.x.ID.String() + c.DedupKey
	if c.DedupKey != "" {
		c.Known = k.known[key]
	}
	k.transact(func() {
		err = s.do(func(fx *Effects) error {
			var receipt *UsageReceipt
			o, receipt, err = s.x.ReportUsage(fx, c)
			k.remember(key, receipt)
			return err
		})
	})
	return o, err
}

func (k *bank) remember(key string, receipt *UsageReceipt) {
	if receipt == nil {
		return
	}
	stored, err := DecodeUsageReceipt(receipt.Encode())
	if err != nil {
		k.t.Fatalf("receipt: %v", err)
	}
	if diff := cmp.Diff(receipt, stored); diff != "" {
		k.t.Fatalf("receipt read back: %s", diff)
	}
	k.known[key] = stored
}

// charge books without a fence; for an execution when one is given.
func (k *bank) charge(c ChargeCommand, s *story) (o UsageOutcome, err error) {
	k.t.Helper()
	key := c.Budget.String() + c.DedupKey
	if c.DedupKey != "" {
		c.Known = k.known[key]
	}
	act := func(fx *Effects) error {
		var receipt *UsageReceipt
		o, receipt, err = fx.Books.Charge(fx, c)
		k.remember(key, receipt)
		return err
	}
	if s != nil {
		c.Execution = s.x
		k.transact(func() {
			err = s.do(func(fx *Effects) error { c.Execution = s.x; return act(fx) })
		})
		return o, err
	}
	err = k.do(func(fx *Effects) error {
		before := map[base.UUID]*Budget{}
		for id := range k.stored {
			before[id] = k.books.Get(id).clone()
		}
		if err := act(fx); err != nil {
			return err
		}
		for id, was := range before {
			for name, d := range k.books.Get(id).Dimensions {
				k.loose[Spend{Budget: id, Epoch: was.Epoch, Dimension: name}] += d.Used - was.Dimensions[name].Used
			}
		}
		return nil
	})
	return o, err
}

// rows are the ledger's rows of an execution.
func (k *bank) rows(execution base.ID) []LedgerRow {
	byBudget := map[[2]any]map[string]int64{}
	for spend, amount := range k.ledger {
		if spend.Execution == execution.UUID {
			key := [2]any{spend.Budget, spend.Epoch}
			if byBudget[key] == nil {
				byBudget[key] = map[string]int64{}
			}
			byBudget[key][spend.Dimension] = amount
		}
	}
	var rows []LedgerRow
	for key, used := range byBudget {
		rows = append(rows, LedgerRow{Budget: key[0].(base.UUID), Epoch: key[1].(int64), Used: used})
	}
	return rows
}

func (k *bank) release(id base.UUID, execution base.ID) (released map[string]int64) {
	k.t.Helper()
	err := k.do(func(fx *Effects) (err error) {
		released, err = k.books.ReleaseSpend(fx, id, execution.UUID, k.rows(execution))
		return err
	})
	if err != nil {
		k.t.Fatalf("release: %v", err)
	}
	return released
}

func (k *bank) update(id base.UUID, u BudgetUpdate) (changed bool, err error) {
	k.t.Helper()
	err = k.do(func(fx *Effects) error {
		changed, err = k.books.Update(fx, id, u)
		return err
	})
	return changed, err
}

func hard(name string, n int64) BudgetUpdate {
	return BudgetUpdate{Dimensions: map[string]DimensionUpdate{name: {Hard: LimitChange{true, &n}}}}
}

// told counts the events of a kind about a budget.
func (k *bank) told(kind string, id base.UUID) (n int64) {
	for _, event := range k.events {
		if event.Kind == kind && dataOf(k.t, event)["budget_id"] == id.String() {
			n++
		}
	}
	return n
}

// lastTold is the data of the newest event of a kind.
func (k *bank) lastTold(kind string) map[string]any {
	k.t.Helper()
	for _, event := range slices.Backward(k.events) {
		if event.Kind == kind {
			return dataOf(k.t, event)
		}
	}
	k.t.Fatalf("no %s was told", kind)
	return nil
}

// audit recomputes from the executions and the ledger what the budgets say (BI1, BI2, BI3, BI11).
func (k *bank) audit() {
	k.t.Helper()
	held := map[heldBy]bool{}
	reserved := map[Spend]int64{}
	for _, s := range k.runs {
		live := s.x.Status == Granted || s.x.Status == Running
		if s.x.Reservation != nil && !live {
			k.t.Fatalf("BI2: %s holds %+v", s.x.Status, s.x.Reservation)
		}
		if s.x.Reservation == nil {
			continue
		}
		for _, hold := range s.x.Reservation.Holds {
			held[heldBy{hold.Budget, s.x.ID}] = true
			for name, amount := range hold.Remaining {
				if amount <= 0 {
					k.t.Fatalf("a hold of %d", amount)
				}
				reserved[Spend{Budget: hold.Budget, Dimension: name}] += amount
			}
		}
	}
	for id := range k.stored {
		k.auditBudget(k.budget(id), held, reserved)
	}
}

// heldBy is a lease or grant that is charged to a budget.
type heldBy struct {
	Budget    base.UUID
	Execution base.ID
}

func (k *bank) auditBudget(b *Budget, held map[heldBy]bool, reserved map[Spend]int64) {
	k.t.Helper()
	live := int64(0)
	for ref := range held {
		if ref.Budget == b.ID {
			live++
		}
	}
	if live != b.LiveHolds {
		k.t.Fatalf("BI2: %d live holds, the budget says %d", live, b.LiveHolds)
	}
	for name, d := range b.Dimensions {
		if d.Reserved != reserved[Spend{Budget: b.ID, Dimension: name}] {
			k.t.Fatalf("BI2: %s: reserved %d, holds %d", name, d.Reserved, reserved[Spend{Budget: b.ID, Dimension: name}])
		}
		if d.Used < 0 || d.Overrun < 0 || d.Hard != nil && d.Used+d.Reserved > d.most() {
			k.t.Fatalf("BI1: %s: %+v", name, d)
		}
		sum := k.loose[Spend{Budget: b.ID, Epoch: b.Epoch, Dimension: name}]
		for spend, amount := range k.ledger {
			if amount < 0 {
				k.t.Fatalf("BI3: the ledger has %d for %+v", amount, spend)
			}
			if spend.Budget == b.ID && spend.Epoch == b.Epoch && spend.Dimension == name {
				sum += amount
			}
		}
		if sum != d.Used {
			k.t.Fatalf("BI3: %s: used %d, booked %d", name, d.Used, sum)
		}
	}
	if n := k.told("budget.hard_breach", b.ID); n != b.Breaches {
		k.t.Fatalf("BI11: %d hard breaches, %d told", b.Breaches, n)
	}
	if n := k.told("budget.soft_breach", b.ID); n != b.SoftBreaches {
		k.t.Fatalf("BI11: %d soft breaches, %d told", b.SoftBreaches, n)
	}
}

func TestB10_the_books_go_back_to_a_mark(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100}}}`)
	k.books = NewBooks()
	k.books.Add(k.budget(id))
	fx := &Effects{Now: k.now, Books: k.books}
	first := k.books.Mark()
	must[UsageOutcome](t)(chargeOnce(fx, id, 10))
	second := k.books.Mark()
	must[UsageOutcome](t)(chargeOnce(fx, id, 20))
	if err := k.books.Delete(fx, id, DeleteFacts{}); err != nil || k.books.Get(id) != nil || len(k.books.Deleted()) != 1 {
		t.Fatalf("delete: %v", err)
	}
	k.books.Back(second)
	if used := k.books.Get(id).Dimensions["tokens"].Used; used != 10 || len(k.books.Changed()) != 1 || len(k.books.Freed()) != 0 {
		t.Fatalf("used %d after going back once", used)
	}
	k.books.Back(first)
	if used := k.books.Get(id).Dimensions["tokens"].Used; used != 0 || len(k.books.Changed()) != 0 {
		t.Fatalf("used %d after going back to the beginning", used)
	}
}

func chargeOnce(fx *Effects, id base.UUID, n int64) (UsageOutcome, error) {
	o, _, err := fx.Books.Charge(fx, ChargeCommand{Budget: id, Usage: amounts("tokens", n)})
	return o, err
}

func sameAmounts(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}
