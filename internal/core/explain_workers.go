package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// nearestShown is how many of the nearest workers are shown (S59).
const nearestShown = 5

// CandidateWorkers states which workers could take an execution (S59).
type CandidateWorkers struct {
	Live     int // instances
	OnLane   int // live and serving the lane of the execution
	Matching int // live and serving such work
	Nearest  []CandidateWorker
}

// CandidateWorker is a live instance and what prevents it from taking an execution.
type CandidateWorker struct {
	WorkerID   string
	InstanceID string
	Unmet      []string // lane, namespace, kind, capability:<token>, draining, no_free_place
}

// The conditions of S59.
const (
	UnmetLane       = "lane"
	UnmetNamespace  = "namespace"
	UnmetKind       = "kind"
	UnmetCapability = "capability:" // and the token
	UnmetDraining   = "draining"
	UnmetNoPlace    = "no_free_place"
)

// Unmet lists what prevents a live instance that holds the given number of leases from taking work of the class.
func (w *Worker) Unmet(class *Class, leases int) (unmet []string) {
	if !slices.Contains(w.Lanes, class.Lane) {
		unmet = append(unmet, UnmetLane)
	}
	if !among(w.Namespaces, class.Namespace) {
		unmet = append(unmet, UnmetNamespace)
	}
	if !among(w.Kinds, class.Kind) {
		unmet = append(unmet, UnmetKind)
	}
	for _, token := range MissingCapabilities(class.Capabilities, w.Capabilities) {
		unmet = append(unmet, UnmetCapability+token)
	}
	if w.Draining {
		unmet = append(unmet, UnmetDraining)
	}
	if w.full(leases) {
		unmet = append(unmet, UnmetNoPlace)
	}
	return unmet
}

// full reports whether the instance has reached the concurrency that it stated.
func (w *Worker) full(leases int) bool { return w.MaxConcurrent > 0 && leases >= w.MaxConcurrent }

func (in *ExplainInput) candidateWorkers() (near CandidateWorkers) {
	class := in.Execution.Class
	for i := range in.Workers {
		w := &in.Workers[i]
		if !w.Live(in.Now) {
			continue
		}
		near.Live++
		if slices.Contains(w.Lanes, class.Lane) {
			near.OnLane++
		}
		if w.Serves(class) {
			near.Matching++
		}
		near.Nearest = append(near.Nearest, CandidateWorker{w.WorkerID, w.InstanceID, w.Unmet(class, in.Leases[w.InstanceID])})
	}
	slices.SortFunc(near.Nearest, func(a, b CandidateWorker) int {
		return cmp.Or(cmp.Compare(len(a.Unmet), len(b.Unmet)), strings.Compare(a.InstanceID, b.InstanceID))
	})
	near.Nearest = near.Nearest[:min(nearestShown, len(near.Nearest))]
	return near
}

// laneWorkers returns the live instances of the lane that are not draining, and the number of those that are.
func (in *ExplainInput) laneWorkers() (workers []*Worker, draining int) {
	for i := range in.Workers {
		w := &in.Workers[i]
		switch {
		case !w.Live(in.Now) || !slices.Contains(w.Lanes, in.Execution.Class.Lane):
		case w.Draining:
			draining++
		default:
			workers = append(workers, w)
		}
	}
	return workers, draining
}

// missingWorkers states that there is no worker that could take the execution.
func (in *ExplainInput) missingWorkers() []Blocker {
	class := in.Execution.Class
	workers, draining := in.laneWorkers()
	o := base.NewObject(200)
	o.Str("lane", class.Lane)
	o.Num("on_lane", int64(len(workers)))
	if len(workers) == 0 {
		o.Num("draining", int64(draining))
		text := fmt.Sprintf("No live worker takes work from lane %q", class.Lane)
		if draining > 0 {
			text += ": " + counted(draining, "is draining", "are draining")
		}
		text += in.Namespace.workersFull(class.Namespace, o)
		return []Blocker{{Code: BlockerNoLiveWorker, Message: text + ".", Data: o.Done()}}
	}
	var namespaces, kinds, capable int
	missing := class.Capabilities
	for _, w := range workers {
		lacks := MissingCapabilities(class.Capabilities, w.Capabilities)
		if len(lacks) < len(missing) {
			missing = lacks
		}
		namespaces += number(among(w.Namespaces, class.Namespace))
		kinds += number(among(w.Kinds, class.Kind))
		capable += number(len(lacks) == 0)
		if w.Serves(class) {
			return nil
		}
	}
	o.Num("match_namespace", int64(namespaces))
	o.Num("match_kind", int64(kinds))
	o.Num("match_capabilities", int64(capable))
	o.Strs("missing_capabilities", missing)
	text := fmt.Sprintf("Of the %s on lane %q none can take it: %d serve namespace %q, %d take kind %q, %d have all capabilities",
		counted(len(workers), "live worker", "live workers"), class.Lane, namespaces, class.Namespace, kinds, class.Kind, capable)
	if len(missing) > 0 {
		text += "; missing: " + strings.Join(missing, ", ")
	}
	text += in.Namespace.workersFull(class.Namespace, o)
	return []Blocker{{Code: BlockerNoCapableWorker, Message: text + ".", Data: o.Done()}}
}

// workersFull states that no other worker instance can register, because the namespace has as many as it may.
func (n *NamespaceNow) workersFull(name string, o *base.JSONObject) string {
	if n.MaxWorkers == 0 || n.Workers < n.MaxWorkers {
		return ""
	}
	o.Num("workers_of_namespace", int64(n.Workers))
	o.Num("max_workers", int64(n.MaxWorkers))
	return fmt.Sprintf("; namespace %q has %s, and may have %d (max_workers): no other can register", name, counted(n.Workers, "worker instance", "worker instances"), n.MaxWorkers)
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// busyWorkers states that all workers that could take the execution are at capacity.
func (in *ExplainInput) busyWorkers() []Blocker {
	workers, _ := in.laneWorkers()
	matching, places, held := 0, 0, 0
	for _, w := range workers {
		if !w.Serves(in.Execution.Class) {
			continue
		}
		leases, counted := in.Leases[w.InstanceID]
		if !counted { // there are more workers than were counted
			continue
		}
		if !w.full(leases) {
			return nil
		}
		matching, places, held = matching+1, places+w.MaxConcurrent, held+leases
	}
	if matching == 0 {
		return nil
	}
	o := base.NewObject(80)
	o.Num("matching", int64(matching))
	o.Num("max_concurrent", int64(places))
	o.Num("leases", int64(held))
	who := "The only worker that could take it is busy"
	if matching > 1 {
		who = fmt.Sprintf("All %d workers that could take it are busy", matching)
	}
	text := fmt.Sprintf("%s: %d of %d places are taken.", who, held, places)
	return []Blocker{{Code: BlockerWorkersBusy, Message: text, Data: o.Done()}}
}

// inLine states what comes first.
func (in *ExplainInput) inLine() Blocker {
	line := in.Line
	o := base.NewObject(120)
	o.Str("lane", in.Execution.Class.Lane)
	line.write(o)
	text := "It is next in line: the next claim that may take it does."
	if line.Ahead > 0 {
		text = fmt.Sprintf("%s of lane %q before it", line.text(), in.Execution.Class.Lane)
		if line.FairnessKey != "" {
			text += fmt.Sprintf(", %d of them under its own fairness key %q, which takes turns with %s",
				line.AheadOfKey, line.FairnessKey, counted(max(line.Keys-1, 0), "other", "others"))
		}
		text += "."
	}
	if most := in.Namespace.MaxPriority; most > 0 && in.Execution.Priority >= most {
		o.Num("max_priority", int64(most))
		text += fmt.Sprintf(" Submits of namespace %q get a priority of at most %d (max_priority).", in.Execution.Class.Namespace, most)
	}
	b := Blocker{Code: BlockerInLine, Message: text, Data: o.Done()}
	if in.Execution.Status == Ready {
		b.Since = in.Execution.StatusSince
	}
	return b
}

func (l *Line) text() string {
	switch {
	case l.AtLeast:
		return fmt.Sprintf("There are more than %d ready executions", l.Ahead)
	case l.Ahead == 1:
		return "There is 1 ready execution"
	default:
		return fmt.Sprintf("There are %d ready executions", l.Ahead)
	}
}

func (l *Line) write(o *base.JSONObject) {
	o.Num("ahead", int64(l.Ahead))
	o.FlagIf("at_least", l.AtLeast)
	if l.FairnessKey != "" {
		o.Str("fairness_key", l.FairnessKey)
		o.Num("ahead_of_key", int64(l.AheadOfKey))
		o.Num("keys", int64(l.Keys))
		o.Num("weight", int64(l.Weight))
	}
}
