package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func timerTests() []test {
	return []test{
		{"S61: due timers are taken oldest first up to a limit, others are not", dueTimers, anyStore},
		{"a timer comes back with all it names", timerRoundTrip, anyStore},
		{"I16: a timer is not taken before its time", notEarly, anyStore},
		{"S61: a timer that was taken is hidden from other callers", hiddenTimer, anyStore},
		{"S64: a timer that was not handled is taken again and counts its tries", timerTakenAgain, anyStore},
		{"a handled timer is dropped and the others stay", droppedTimer, anyStore},
		{"S61: timers of the kinds that are left out stay for others", leftOut, anyStore},
		{"S62: a timer that is hidden anew stays hidden, one that is gone stays gone", hiddenAnew, anyStore},
		{"S62, R3: hiding a timer never makes it due earlier", hiddenNoEarlier, anyStore},
		{"S64: concurrent callers take different timers and leave none", concurrentCallers, anyStore},
		{"S71: Poll knows the next timer", nextTimer, anyStore},
		{"L5: timers ahead are returned page by page, and stay", timersAhead, anyStore},
	}
}

func (w *world) takeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) []store.Timer {
	w.t.Helper()
	timers, err := w.s.TakeDue(ctx, limit, hide, except...)
	if err != nil {
		w.t.Fatalf("TakeDue: %v", err)
	}
	return timers
}

// timer returns a timer that is due that many milliseconds after the world was made.
func (w *world) timer(after base.Millis, text string) store.Timer {
	return store.Timer{At: w.now.Add(after), Kind: 1, Texts: []string{text}}
}

func textsOf(timers []store.Timer) []string {
	var texts []string
	for _, timer := range timers {
		texts = append(texts, timer.Texts...)
	}
	return texts
}

func dueTimers(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(-10, "d"), w.timer(-4000, "a"), w.timer(base.Hour, "later")}})
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(-3000, "b"), w.timer(0, "e"), w.timer(-20, "c"), w.timer(base.Year, "much later")}})
	w.equal("first two", []string{"a", "b"}, textsOf(w.takeDue(ctx, 2, time.Hour)))
	w.equal("the rest", []string{"c", "d", "e"}, textsOf(w.takeDue(ctx, 100, time.Hour)))
	w.equal("nothing left", 0, len(w.takeDue(ctx, 100, time.Hour)))
}

func timersAhead(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	due, ahead, late := w.timer(-10, "due"), w.timer(base.Hour, "ahead"), w.timer(base.Year, "much later")
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{ahead, due, late}})
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(base.Minute, "soon")}})
	w.takeDue(ctx, 10, 2*time.Hour)
	var texts []string
	for after, more := int64(0), true; more; {
		page, err := w.s.TimersAhead(ctx, w.now.Add(base.Second), w.now.Add(3*base.Hour), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, textsOf(page)...)
		if more = len(page) == 2; more {
			after = page[1].Seq
		}
	}
	slices.Sort(texts)
	w.equal("ahead, also what is hidden", []string{"ahead", "due", "soon"}, texts)
	w.equal("nothing is due", 0, len(w.takeDue(ctx, 10, time.Hour)))
}

func timerRoundTrip(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	many := store.Timer{At: w.now.Add(-50), Kind: 1, Texts: []string{"", "ü 'quoted' \"text\"", "a,b", "{}"}}
	for range 600 {
		many.IDs = append(many.IDs, newUUID(w.now))
	}
	timers := []store.Timer{
		many,
		{At: w.now.Add(-40), Kind: 255},
		{At: w.now.Add(-30), Kind: 2, IDs: many.IDs[:1]},
		{At: w.now.Add(-20), Kind: 3, Texts: []string{"only text"}},
	}
	w.add(ctx, &store.Changes{AddTimers: timers})
	got := w.takeDue(ctx, 10, time.Hour)
	numbers := map[int64]bool{}
	for i := range got {
		numbers[got[i].Seq] = true
		got[i].Seq = 0
	}
	w.equal("timers", timers, got)
	if len(numbers) != len(timers) {
		t.Fatalf("timers share numbers: %v", numbers)
	}
}

func notEarly(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	due := w.clock(ctx).Add(40)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{{At: due, Kind: 1}}})
	for {
		got := w.takeDue(ctx, 1, time.Hour)
		now := w.clock(ctx)
		if len(got) == 1 && now < due {
			t.Fatalf("a timer due at %v was taken before %v", due, now)
		}
		if len(got) == 1 {
			return
		}
	}
}

func hiddenTimer(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(-100, "a"), w.timer(-50, "b")}})
	w.equal("first caller", []string{"a"}, textsOf(w.takeDue(ctx, 1, time.Hour)))
	w.equal("second caller", []string{"b"}, textsOf(w.takeDue(ctx, 10, time.Hour)))
	if f.OpenAgain != nil {
		w.equal("another process", 0, len(w.at(f.OpenAgain(t, w.s)).takeDue(ctx, 10, time.Hour)))
	}
}

func timerTakenAgain(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := []base.UUID{newUUID(w.now)}
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{{At: w.now.Add(-100), Kind: 7, IDs: ids, Texts: []string{"a"}}}})
	var last store.Timer
	for tries := range 4 {
		var got []store.Timer
		for len(got) == 0 {
			got = w.takeDue(ctx, 10, 5*time.Millisecond)
		}
		last = got[0]
		if len(got) != 1 || last.Tries != tries || last.Kind != 7 || !slices.Equal(last.IDs, ids) || !slices.Equal(last.Texts, []string{"a"}) {
			t.Fatalf("try %d: %+v", tries, got)
		}
	}
	w.add(ctx, &store.Changes{DropTimers: []store.Timer{last}})
	w.equal("next timer", base.Time(0), w.poll(ctx).NextTimer)
}

func droppedTimer(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(-30, "a"), w.timer(-30, "b"), w.timer(-30, "c"), w.timer(-20, "d")}})
	taken := w.takeDue(ctx, 4, time.Millisecond)
	w.equal("taken", 4, len(taken))
	kept := taken[1]
	w.add(ctx, &store.Changes{DropTimers: []store.Timer{taken[0], taken[2], taken[3]}})
	var again []store.Timer
	for len(again) == 0 {
		again = w.takeDue(ctx, 10, time.Hour)
	}
	w.equal("taken again", kept.Texts, textsOf(again))
	w.add(ctx, &store.Changes{DropTimers: again})
	w.equal("next timer", base.Time(0), w.poll(ctx).NextTimer)
}

func leftOut(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ch := &store.Changes{}
	for i := range 6 {
		ch.AddTimers = append(ch.AddTimers, store.Timer{At: w.now.Add(int64(i) - 100), Kind: store.TimerKind(i % 3), Texts: []string{fmt.Sprint(i)}})
	}
	w.add(ctx, ch)
	w.equal("a kind left out does not count", []string{"1", "2"}, textsOf(w.takeDue(ctx, 2, time.Hour, 0)))
	w.equal("two left out", []string{"5"}, textsOf(w.takeDue(ctx, 10, time.Hour, 0, 1)))
	w.equal("all left out", 0, len(w.takeDue(ctx, 10, time.Hour, 0, 1, 2, 255)))
	w.equal("the rest", []string{"0", "3", "4"}, textsOf(w.takeDue(ctx, 10, time.Hour)))
}

func hiddenAnew(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{w.timer(-100, "a"), w.timer(-50, "b"), w.timer(-20, "c")}})
	taken := w.takeDue(ctx, 10, time.Millisecond)
	w.equal("taken", 3, len(taken))
	w.add(ctx, &store.Changes{DropTimers: taken[:1]})
	w.hide(ctx, taken[:2], time.Hour)
	w.hide(ctx, taken[2:], 5*time.Millisecond)
	var again []store.Timer
	for len(again) == 0 {
		again = w.takeDue(ctx, 10, 2*time.Hour)
	}
	w.equal("taken again", []string{"c"}, textsOf(again))
	w.equal("hiding is no try", 1, again[0].Tries)
}

func hiddenNoEarlier(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	due := w.now.Add(base.Hour)
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{{At: due, Kind: 1, Texts: []string{"of another incarnation"}}}})
	ahead, err := w.s.TimersAhead(ctx, w.now, due, 0, 10)
	if err != nil {
		t.Fatalf("TimersAhead: %v", err)
	}
	w.hide(ctx, ahead, time.Millisecond)
	w.equal("not earlier", due, w.poll(ctx).NextTimer)
	w.hide(ctx, ahead, 24*time.Hour)
	w.equal("later", true, w.poll(ctx).NextTimer > due)
}

// hide hides timers.
func (w *world) hide(ctx context.Context, timers []store.Timer, hide time.Duration) {
	w.t.Helper()
	if err := w.s.HideTimers(ctx, timers, hide); err != nil {
		w.t.Fatalf("HideTimers: %v", err)
	}
}

func concurrentCallers(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	const timers = 200
	ch := &store.Changes{}
	for i := range timers {
		ch.AddTimers = append(ch.AddTimers, w.timer(-int64(i%20), fmt.Sprint(i)))
	}
	w.add(ctx, ch)
	handles := []store.Store{w.s}
	if f.OpenAgain != nil {
		handles = append(handles, f.OpenAgain(t, w.s))
	}
	var lock sync.Mutex
	var texts []string
	err := together(crowd, func(i int) error {
		for {
			got, err := handles[i%len(handles)].TakeDue(ctx, 7, time.Hour)
			if err != nil && !passing(err) {
				return err
			}
			lock.Lock()
			texts = append(texts, textsOf(got)...)
			done := len(texts) >= timers
			lock.Unlock()
			if done {
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	if len(texts) != timers || len(slices.Compact(texts)) != timers {
		t.Fatalf("%d timers were taken %d times", timers, len(texts))
	}
}

func nextTimer(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.equal("no timer", base.Time(0), w.poll(ctx).NextTimer)
	hour, year := w.timer(base.Hour, "hour"), w.timer(base.Year, "year")
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{year, hour}})
	w.equal("the earlier", hour.At, w.poll(ctx).NextTimer)
	due := w.timer(-base.Hour, "due")
	w.add(ctx, &store.Changes{AddTimers: []store.Timer{due}})
	w.equal("a due one", due.At, w.poll(ctx).NextTimer)
	taken := w.takeDue(ctx, 10, time.Minute)
	answer := w.poll(ctx)
	if answer.NextTimer <= answer.Now || answer.NextTimer > w.clock(ctx).Add(base.Minute) {
		t.Fatalf("with a timer hidden for a minute the next one is at %v, now is %v", answer.NextTimer, answer.Now)
	}
	w.add(ctx, &store.Changes{DropTimers: taken})
	w.equal("after it was handled", hour.At, w.poll(ctx).NextTimer)
	if queues := w.poll(ctx, anyRow(w.class.ID, 0)).Queues; len(queues) != 1 || queues[0] {
		t.Fatalf("Poll of an empty queue says %v", queues)
	}
}
