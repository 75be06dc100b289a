package collect

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// tester is what helpers need of a testing.T or a rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func wantCode(t tester, err error, code base.Code, field string) *base.Error {
	t.Helper()
	var e *base.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Fatalf("got %v, want %s of %q", err, code, field)
	}
	return e
}

func TestT51_a_rule_within_its_bounds(t *testing.T) {
	t.Parallel()
	for given, want := range map[Rule]Rule{
		{Mode: Debounce, Key: "a", QuietMS: 100}:                        {Mode: Debounce, Key: "a", QuietMS: 100, MaxWaitMS: base.Day, Keep: KeepLast},
		{Mode: Debounce, Key: "a", QuietMS: 7 * base.Day}:               {Mode: Debounce, Key: "a", QuietMS: 7 * base.Day, MaxWaitMS: 7 * base.Day, Keep: KeepLast},
		{Mode: Batch, Key: "a"}:                                         {Mode: Batch, Key: "a", MaxItems: 100, MaxWaitMS: 1000, MaxBytes: 4096},
		{Mode: Batch, Key: "a", MaxItems: 2, MaxWaitMS: 1, MaxBytes: 1}: {Mode: Batch, Key: "a", MaxItems: 2, MaxWaitMS: 1, MaxBytes: 1},
	} {
		if got, err := given.Check(4096); err != nil || got != want {
			t.Errorf("%+v: %+v, %v", given, got, err)
		}
	}
	for _, row := range []struct {
		r     Rule
		field string
	}{
		{Rule{Mode: Debounce, QuietMS: 100}, "debounce.key"},
		{Rule{Mode: Batch, Key: strings.Repeat("a", 129)}, "batch.key"},
		{Rule{Mode: Debounce, Key: "a"}, "debounce.quiet_ms"},
		{Rule{Mode: Debounce, Key: "a", QuietMS: 99}, "debounce.quiet_ms"},
		{Rule{Mode: Debounce, Key: "a", QuietMS: 7*base.Day + 1}, "debounce.quiet_ms"},
		{Rule{Mode: Debounce, Key: "a", QuietMS: 200, MaxWaitMS: 199}, "debounce.max_wait_ms"},
		{Rule{Mode: Debounce, Key: "a", QuietMS: 200, MaxWaitMS: 30*base.Day + 1}, "debounce.max_wait_ms"},
		{Rule{Mode: Debounce, Key: "a", QuietMS: 200, Keep: "all"}, "debounce.keep"},
		{Rule{Mode: Batch, Key: "a", MaxItems: 1}, "batch.max_items"},
		{Rule{Mode: Batch, Key: "a", MaxItems: 1001}, "batch.max_items"},
		{Rule{Mode: Batch, Key: "a", MaxWaitMS: -1}, "batch.max_wait_ms"},
		{Rule{Mode: Batch, Key: "a", MaxWaitMS: base.Day + 1}, "batch.max_wait_ms"},
		{Rule{Mode: Batch, Key: "a", MaxBytes: 4097}, "batch.max_bytes"},
	} {
		_, err := row.r.Check(4096)
		wantCode(t, err, base.CodeInvalidArgument, row.field)
	}
}

func TestT51_what_does_not_go_with_a_rule(t *testing.T) {
	t.Parallel()
	r := Rule{Mode: Batch}
	if err := r.CheckBeside(Beside{}); err != nil {
		t.Error(err)
	}
	for _, b := range []Beside{{Other: true}, {Delay: true}, {Unique: true}, {Flow: true}, {Transaction: true}} {
		wantCode(t, r.CheckBeside(b), base.CodeInvalidArgument, "batch")
	}
}

// gathering is a key whose submits come in order.
type gathering struct {
	t       tester
	rule    Rule
	now     base.Time
	c       *Collection
	n       uint64
	started []Collection
	items   map[base.ID][]base.UUID // of each execution
}

func newGathering(t tester, r Rule) *gathering {
	t.Helper()
	r.Key = "k"
	checked, err := r.Check(1000)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &gathering{t: t, rule: checked, now: 1_000_000, items: map[base.ID][]base.UUID{}}
}

// to turns the clock, and starts what is due.
func (g *gathering) to(now base.Time) {
	g.now = now
	if g.c != nil && g.c.StartsAt <= now {
		g.started, g.c = append(g.started, *g.c), nil
	}
}

func (g *gathering) submit(change func(*Arrival)) Decision {
	g.t.Helper()
	g.n++
	item := &Arrival{Size: 10, Policy: "p"}
	binary.BigEndian.PutUint64(item.ID[:], g.n)
	if change != nil {
		change(item)
	}
	d, err := Join(g.c, g.c != nil, g.rule, item, g.now)
	if err != nil {
		g.t.Fatalf("%v", err)
	}
	if d.Known {
		return d
	}
	if d.Start {
		g.started = append(g.started, *g.c)
	}
	stored, err := Decode(d.After.Encode())
	if err != nil || !reflect.DeepEqual(stored, d.After) {
		g.t.Fatalf("%v: %+v is read as %+v", err, d.After, stored)
	}
	g.c = &stored
	g.items[stored.Execution] = append(g.items[stored.Execution], item.ID)
	g.to(g.now)
	return d
}

func TestT52_a_debounce_starts_after_quiet_or_at_its_longest_wait(t *testing.T) {
	t.Parallel()
	for keep, want := range map[Keep]byte{KeepLast: 4, KeepFirst: 1} {
		g := newGathering(t, Rule{Mode: Debounce, QuietMS: 1000, MaxWaitMS: 2500, Keep: keep})
		for i, starts := range []base.Time{1_001_000, 1_001_900, 1_002_500, 1_002_500} {
			g.to(1_000_000 + base.Time(i)*900 - base.Time(i/3*300))
			if d := g.submit(nil); d.Begin != (i == 0) || d.After.StartsAt != starts {
				t.Errorf("submit %d: %+v", i, d)
			}
		}
		g.to(1_002_500)
		if len(g.started) != 1 || g.started[0].Items != 4 || g.started[0].Input[7] != want {
			t.Errorf("%s: %+v", keep, g.started)
		}
		if d := g.submit(nil); !d.Begin {
			t.Errorf("%+v", d)
		}
	}
}

func TestT52_a_batch_starts_by_number_bytes_or_time(t *testing.T) {
	t.Parallel()
	g := newGathering(t, Rule{Mode: Batch, MaxItems: 3, MaxWaitMS: 500, MaxBytes: 100})
	for range 3 {
		g.submit(nil)
	}
	if len(g.started) != 1 || g.started[0].Items != 3 || g.c != nil {
		t.Fatalf("by number: %+v", g.started)
	}
	g.submit(func(i *Arrival) { i.Size = 60 })
	g.submit(func(i *Arrival) { i.Size = 40 })
	if d := g.submit(func(i *Arrival) { i.Size = 1 }); !d.Begin || !d.Start || g.started[1].Bytes != 100 {
		t.Fatalf("by bytes: %+v", g.started)
	}
	g.to(g.now + 499)
	g.submit(nil)
	if len(g.started) != 2 {
		t.Fatalf("too early: %+v", g.started)
	}
	g.to(g.now + 1)
	if len(g.started) != 3 || g.started[2].Items != 2 {
		t.Fatalf("by time: %+v", g.started)
	}
}

func TestT52_what_items_bring_along(t *testing.T) {
	t.Parallel()
	g := newGathering(t, Rule{Mode: Batch})
	g.submit(func(i *Arrival) { i.Priority, i.Tags, i.DeadlineAt = 5, base.Tags{"a": "1", "b": "1"}, 9_000_000 })
	g.submit(func(i *Arrival) { i.Priority, i.Tags = 3, base.Tags{"b": "2"} })
	g.submit(func(i *Arrival) { i.Priority, i.DeadlineAt = 7, 8_000_000 })
	if c := g.c; c.Priority != 7 || c.DeadlineAt != 8_000_000 || !reflect.DeepEqual(c.Tags, base.Tags{"a": "1", "b": "2"}) {
		t.Errorf("%+v", c)
	}
	if d := g.submit(func(i *Arrival) { i.Known = true }); !d.Known || g.c.Items != 3 {
		t.Errorf("a repeated item: %+v", d)
	}
	_, err := Join(g.c, true, g.rule, &Arrival{ID: base.UUID{1}, Policy: "q"}, g.now)
	if e := wantCode(t, err, base.CodeCollectConflict, "batch.key"); e.Details["execution_id"] != g.c.Execution.UUID.String() {
		t.Error(e.Details)
	}
	_, err = Join(g.c, true, Rule{Mode: Debounce, QuietMS: 100, MaxWaitMS: 100}, &Arrival{ID: base.UUID{1}, Policy: "p"}, g.now)
	wantCode(t, err, base.CodeCollectConflict, "debounce.key")
	many := base.Tags{}
	for i := range 63 {
		many["t"+strings.Repeat("a", i)] = ""
	}
	_, err = Join(g.c, true, g.rule, &Arrival{ID: base.UUID{1}, Policy: "p", Tags: many}, g.now)
	wantCode(t, err, base.CodeInvalidArgument, "tags")
	if d, err := Join(g.c, false, g.rule, &Arrival{ID: base.UUID{1}, Policy: "q"}, g.now); err != nil || !d.Begin || d.Start {
		t.Errorf("one that no longer collects: %+v, %v", d, err)
	}
}

func TestTI5_every_item_is_in_one_execution(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		r := Rule{Mode: Batch, MaxItems: rapid.IntRange(2, 5).Draw(t, "items"), MaxWaitMS: 300, MaxBytes: 100}
		if rapid.Bool().Draw(t, "debounce") {
			r = Rule{Mode: Debounce, QuietMS: 100, MaxWaitMS: 300}
		}
		g := newGathering(t, r)
		accepted := 0
		for range rapid.IntRange(1, 60).Draw(t, "submits") {
			g.to(g.now + base.Time(rapid.IntRange(0, 150).Draw(t, "later")))
			size := rapid.Int64Range(0, 120).Draw(t, "size")
			if !g.submit(func(i *Arrival) { i.Size, i.Known = size, rapid.IntRange(0, 9).Draw(t, "known") == 0 }).Known {
				accepted++
			}
			if c := g.c; c != nil && (c.StartsAt > c.FirstAt+300 || c.StartsAt <= g.now) {
				t.Fatalf("at %d: %+v", g.now, c)
			}
		}
		g.to(g.now + 300)
		delivered := 0
		for _, c := range g.started {
			delivered += int(c.Items)
			if n := len(g.items[c.Execution]); int64(n) != c.Items || r.Mode == Batch && (n > r.MaxItems || n > 1 && c.Bytes > r.MaxBytes) {
				t.Fatalf("%d items of %+v", n, c)
			}
		}
		if delivered != accepted || len(g.started) != len(g.items) {
			t.Fatalf("%d items were accepted, %d delivered by %d of %d executions", accepted, delivered, len(g.started), len(g.items))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(Collection{Mode: Batch, Execution: base.IDOf(base.UUID{1}), Input: base.UUID{1}, FirstAt: 1, StartsAt: 2, Items: 1}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		if again, err := Decode(c.Encode()); err != nil || again.Execution != c.Execution || again.StartsAt != c.StartsAt {
			t.Fatalf("%+v is read as %+v: %v", c, again, err)
		}
	})
}
