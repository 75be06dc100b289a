package limits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	mostHolders  = 20     // named of a key
	holdersAsked = 500    // executions looked at in one read, to find holders
	holdersSeen  = 10_000 // looked at for a key
)

// Holding are the statuses in which an execution may hold slots, those first in which most do (S41).
var Holding = []core.Status{core.Running, core.Granted, core.Suspended, core.Delayed, core.Blocked, core.Ready}

// FindHolders finds the first executions that hold slots of the keys. For a caller that does not see everything it counts them. It reads once
// through the classes of all keys that have too few.
func (l *QuotaLook) FindHolders(ctx context.Context, views []QuotaKeyView) error {
	h := &holderWalk{look: l, found: map[string]int{}, lacking: map[string]*QuotaKeyView{}}
	for i := range views {
		if views[i].Held > 0 {
			h.lacking[l.use(views[i].Key).SlotsKey()] = &views[i]
		}
	}
	most := holdersSeen * len(h.lacking)
	for _, status := range Holding {
		if err := h.walk(ctx, status, most); err != nil {
			return err
		}
	}
	if l.Whole {
		return nil
	}
	for i := range views {
		lacks := h.lacking[l.use(views[i].Key).SlotsKey()] != nil
		views[i].Held, views[i].AtLeast = h.found[views[i].Key], views[i].AtLeast || lacks && h.seen >= most
	}
	return nil
}

// holderWalk finds the holders of slots.
type holderWalk struct {
	look    *QuotaLook
	lacking map[string]*QuotaKeyView // by slots key, those of which more are to be found
	found   map[string]int           // by key
	seen    int
}

// walk looks at the executions of a status.
func (h *holderWalk) walk(ctx context.Context, status core.Status, most int) error {
	q := store.Query{Statuses: []core.Status{status}, Order: store.IDAsc, Limit: holdersAsked}
	for len(h.lacking) > 0 && h.seen < most {
		q.Classes = h.classes()
		hits, loaded, err := h.look.Engine.findRecords(ctx, q)
		if err != nil {
			return err
		}
		for _, hit := range hits {
			if x := loaded.Executions[hit.ID]; x != nil {
				h.take(x)
			}
		}
		if h.seen += len(hits); len(hits) < q.Limit {
			return nil
		}
		q.After = &hits[len(hits)-1]
	}
	return nil
}

// take notes the execution with the keys that it holds slots of.
func (h *holderWalk) take(x *core.Execution) {
	for _, slots := range x.Holds {
		view := h.lacking[slots]
		if view == nil {
			continue
		}
		h.found[view.Key]++
		if len(view.Holders) < mostHolders {
			view.Holders = append(view.Holders, x.ID)
		}
		if h.found[view.Key] >= view.Held || h.look.Whole && len(view.Holders) == mostHolders {
			delete(h.lacking, slots)
		}
	}
}

// classes returns the classes that name a key for which holders are still looked for.
func (h *holderWalk) classes() []int32 {
	var numbers []int32
	for _, view := range h.lacking {
		numbers = append(numbers, ClassNumbers(h.look.Classes[view.Key])...)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
