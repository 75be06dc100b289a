package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// streaming are the moves of workers that say something, and of those who follow it.
func streaming() []kind {
	return []kind{{name: "say", do: say}, {name: "tail", do: tail}}
}

// withStreams puts moves of streams among those of a plan, which stay as they are.
func (p Plan) withStreams() Plan {
	r := rand.New(rand.NewPCG(p.Seed, 7)) //nolint:gosec // G404: a history is repeated from its seed
	if r.IntN(3) == 0 {
		return p
	}
	all := make([]Move, 0, len(p.Moves)*5/4)
	for _, m := range p.Moves {
		all = append(all, m)
		if n := r.IntN(12); n < 3 {
			all = append(all, Move{streaming()[n/2].name, r.Uint64()})
		}
	}
	p.Moves = all
	return p
}

// said is a call that appended frames, as its caller was told.
type said struct {
	l           *lease
	first, last int64
	texts       []string
}

// tailer follows the streams of an execution with a cursor, from call to call and from process to process (E16).
type tailer struct {
	j      *job
	cursor string
	busy   bool
	seen   []string
}

// say appends frames. Each has a text of its own, so that one that is stored twice is found.
func say(w *World, r *rand.Rand) {
	l, p := w.lease(r), w.up(r)
	if l == nil || p == nil {
		return
	}
	known := l.j.epoch
	l.calls++
	seq := l.calls
	texts := make([]string, 1+r.IntN(3))
	request := engine.AppendRequest{ClientSeq: &seq}
	for i := range texts {
		texts[i] = fmt.Sprintf("%s.%d.%d", l, seq, i)
		request.Drafts = append(request.Drafts, stream.Draft{Payload: []byte(texts[i])})
	}
	w.issue(p, fmt.Sprintf("say %d under %s", seq, l), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.AppendFrames(ctx, client(""), l.j.id.Given(), l.f, request)
	}, func(answer any, err error) {
		if err != nil {
			return
		}
		a := answer.(engine.AppendAnswer)
		w.journal.fenced("say", l, known, nil, false)
		w.journal.said = append(w.journal.said, said{l, a.FirstSeq, a.LastSeq, texts})
	})
}

// tail reads on in the streams of an execution, one call at a time for each reader.
func tail(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil || len(w.journal.said) == 0 {
		return
	}
	if len(w.journal.tailers) < 4 {
		j := w.journal.said[r.IntN(len(w.journal.said))].l.j
		if !slices.ContainsFunc(w.journal.tailers, func(t *tailer) bool { return t.j == j }) {
			w.journal.tailers = append(w.journal.tailers, &tailer{j: j})
		}
	}
	t := w.journal.tailers[r.IntN(len(w.journal.tailers))]
	if t.busy {
		return
	}
	t.busy = true
	limit := 1 + r.IntN(4)
	c := w.issue(p, "tail "+short(t.j.id), t.next(limit), nil)
	c.then = func(answer any, err error) {
		if t.busy = false; err == nil {
			t.take(answer.(engine.FollowPage))
		}
	}
}

// next reads the next page.
func (t *tailer) next(limit int) func(context.Context, *engine.Engine) (any, error) {
	return func(ctx context.Context, e *engine.Engine) (any, error) {
		follow, err := e.NewFollow(client(""), t.j.id.Given(), engine.FollowRequest{What: stream.Every, After: t.cursor})
		if err != nil {
			return nil, err
		}
		return follow.Next(ctx, &limit, 0)
	}
}

// take keeps what a page has. The end of the execution is left out: a replay takes it back.
func (t *tailer) take(page engine.FollowPage) {
	for i := range page.Items {
		item := &page.Items[i]
		switch {
		case item.Frame != nil:
			t.seen = append(t.seen, item.ID+" "+string(item.Frame.Payload))
		case item.Control.Kind != stream.StepClosed:
			t.seen = append(t.seen, item.ID)
		}
	}
	t.cursor = page.Next.String()
}

// checkStreams reads all streams: what was acknowledged is there, once and in its place (I1, E1), nothing is there twice (E3), every attempt of an
// execution that has ended is closed (E12), and who followed from place to place has what a reader of the whole has (E16).
func (w *World) checkStreams() {
	whole := map[*job][]string{}
	for i := range w.journal.said {
		j := w.journal.said[i].l.j
		if _, read := whole[j]; !read && !j.deleted && !(j.member && w.journal.deletes) {
			whole[j] = w.readStreams(&tailer{j: j})
			w.checkStream(j, whole[j])
		}
	}
	for _, t := range w.journal.tailers {
		if all, read := whole[t.j]; read && len(w.findings) == 0 {
			got := w.readStreams(t)
			if t.j.replayed { // a reader at the end of an execution does not learn of a later run that has also ended
				all = slices.DeleteFunc(slices.Clone(all), func(item string) bool { return !slices.Contains(got, item) })
			}
			if !slices.Equal(got, all) {
				w.found("E16: who followed %s saw\n%s\nand there is\n%s", t.j.id, strings.Join(got, "\n"), strings.Join(all, "\n"))
			}
		}
	}
}

// readStreams reads on to the end.
func (w *World) readStreams(t *tailer) []string {
	for n := 0; len(w.findings) == 0; n++ {
		answer, err, ok := w.call(n%len(w.procs), "read the streams of "+short(t.j.id), t.next(100))
		if !ok || err != nil {
			w.found("E15: the streams of %s: %v", t.j.id, err)
			break
		}
		page := answer.(engine.FollowPage)
		if t.take(page); page.AtEnd {
			if !page.Done && len(page.Items) == 0 {
				w.found("E12: %s has ended, and its streams have not", t.j.id)
			}
			if page.Done {
				break
			}
		}
	}
	return t.seen
}

// checkStream compares the streams of an execution with what callers were told.
func (w *World) checkStream(j *job, all []string) {
	texts, places := map[string]string{}, map[string]string{}
	for _, item := range all {
		place, text, frame := strings.Cut(item, " ")
		if !frame {
			continue
		}
		if texts[text] != "" {
			w.found("E3: %q is at %s and at %s of %s", text, texts[text], place, j.id)
		}
		texts[text], places[place] = place, text
	}
	for _, s := range w.journal.said {
		if s.l.j != j {
			continue
		}
		if int(s.last-s.first)+1 != len(s.texts) {
			w.found("E1: %d frames were appended to %s as %d..%d", len(s.texts), j.id, s.first, s.last)
		}
		for i, text := range s.texts {
			if _, seq, _ := strings.Cut(texts[text], "-"); seq != fmt.Sprint(s.first+int64(i)) {
				w.found("I1: %q was acknowledged at %d of %s and is at %q", text, s.first+int64(i), j.id, texts[text])
			}
		}
	}
}
