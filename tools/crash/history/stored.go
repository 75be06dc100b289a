package history

import (
	"slices"
	"strings"
)

// checkAcknowledged: what was acknowledged exists, and a key names one execution or flow (I1, I8).
func checkAcknowledged(f *Facts) (all []Finding) {
	type named struct{ call, key string }
	byKey := map[named]string{}
	for _, c := range f.Calls {
		if c.Outcome != Done || c.Name != Submit && c.Name != Flow {
			continue
		}
		_, isExecution := f.Executions[c.Execution]
		_, isFlow := f.Flows[c.Execution]
		if c.Name == Submit && !isExecution || c.Name == Flow && !isFlow {
			all = append(all, found("I1", c.Execution, "its %s under the key %s was acknowledged, and it does not exist", c.Name, c.Key))
		}
		at := named{c.Name, c.Key}
		if old, known := byKey[at]; known && old != c.Execution {
			all = append(all, found("I8", c.Execution, "the key %s named %s before", c.Key, old))
		}
		byKey[at] = c.Execution
	}
	stored := map[string]string{}
	for _, id := range sorted(f.Executions) {
		x := f.Executions[id]
		if x.Key == "" {
			continue
		}
		if other, twice := stored[x.Key]; twice {
			all = append(all, found("I8", id, "the key %s also names %s", x.Key, other))
		}
		stored[x.Key] = id
	}
	return all
}

// checkEnds: everything has ended, as its kind ends unless it was cancelled (I7, I10).
func checkEnds(f *Facts) (all []Finding) {
	mayBeCancelled := map[string]bool{}
	for _, c := range f.Calls {
		if c.Name == Cancel && c.Outcome != Refused {
			mayBeCancelled[c.Execution] = true
		}
	}
	for _, id := range sorted(f.Executions) {
		x := f.Executions[id]
		switch {
		case !x.Terminal():
			all = append(all, found("I7", id, "it is %s: %s", x.Status, x.Explanation))
		case x.Status == "cancelled" && (mayBeCancelled[id] || mayBeCancelled[x.Parent]):
		case x.Expected != "" && x.Status != x.Expected:
			all = append(all, found("I7", id, "it ended %s, its kind %s ends %s", x.Status, x.Kind, x.Expected))
		case x.Status == "succeeded" && x.WantResult != "" && x.Result != x.WantResult:
			all = append(all, found("I5", id, "its result is %q, want %q", x.Result, x.WantResult))
		}
	}
	for _, id := range sorted(f.Flows) {
		if !slices.Contains([]string{"completed", "failed", "cancelled"}, f.Flows[id]) {
			all = append(all, found("I7", id, "the flow is %s", f.Flows[id]))
		}
	}
	return all
}

// checkProblems: the system itself has found nothing.
func checkProblems(f *Facts) (all []Finding) {
	for _, problem := range f.Problems {
		all = append(all, found("doctor", "", "%s", problem))
	}
	return all
}

// checkCompletions: in one run at most one lease completes an execution, and without a replay the stored result is the acknowledged one (I3-I5).
func checkCompletions(f *Facts) (all []Finding) {
	replayed := replays(f)
	acknowledged := map[string]Call{}
	for _, c := range f.Calls {
		if c.Name != Complete || c.Outcome != Done || replayed[c.Execution] {
			continue
		}
		if first, known := acknowledged[c.Execution]; known && first.Lease != c.Lease {
			all = append(all, found("I4", c.Execution, "two completions were acknowledged, of epoch %d and of epoch %d", first.Epoch, c.Epoch))
		}
		acknowledged[c.Execution] = c
		if x, there := f.Executions[c.Execution]; !there || x.Status != "succeeded" || x.Result != c.Result {
			all = append(all, found("I5", c.Execution, "its completion with %q was acknowledged; it is %q with %q", c.Result, x.Status, x.Result))
		}
	}
	return all
}

// replays returns the executions that may have been replayed.
func replays(f *Facts) map[string]bool {
	replayed := map[string]bool{}
	for _, c := range f.Calls {
		if c.Name == Replay && c.Outcome != Refused {
			replayed[c.Execution] = true
		}
	}
	return replayed
}

// checkReads: an end that a reader saw does not change (I5).
func checkReads(f *Facts) (all []Finding) {
	replayed := replays(f)
	for _, c := range f.Calls {
		if c.Name != Get || c.Outcome != Done || replayed[c.Execution] {
			continue
		}
		x, there := f.Executions[c.Execution]
		if saw := (Execution{Status: c.Value}); !there || saw.Terminal() && (x.Status != c.Value || x.Result != c.Result) {
			all = append(all, found("I5", c.Execution, "a reader saw %s with %q; it is %q with %q", c.Value, c.Result, x.Status, x.Result))
		}
	}
	return all
}

// checkCancels: after an acknowledged cancel an execution is cancelled (I13). Cancelled executions are not replayed here.
func checkCancels(f *Facts) (all []Finding) {
	for _, c := range f.Calls {
		if c.Name != Cancel || c.Outcome != Done {
			continue
		}
		if x := f.Executions[c.Execution]; x.Status != "cancelled" {
			all = append(all, found("I13", c.Execution, "its cancel was acknowledged; it is %q", x.Status))
		}
	}
	return all
}

// checkSignals: an acknowledged signal is stored once, and its key names one signal (I1, I11).
func checkSignals(f *Facts) (all []Finding) {
	byKey := map[string]string{}
	for _, c := range f.Calls {
		if c.Name != Sign || c.Outcome != Done {
			continue
		}
		n := 0
		for _, s := range f.Signals[c.Execution] {
			if s.ID == c.Value {
				n++
			}
		}
		if n != 1 {
			all = append(all, found("I1", c.Execution, "the signal %s was acknowledged, and is stored %d times", c.Value, n))
		}
		if old, known := byKey[c.Key]; known && old != c.Value {
			all = append(all, found("I11", c.Execution, "the key %s named the signal %s, then %s", c.Key, old, c.Value))
		}
		byKey[c.Key] = c.Value
	}
	for _, id := range sorted(f.Signals) {
		if n := len(f.Signals[id]); n > 1 {
			all = append(all, found("I11", id, "one signal was sent, %d are stored", n))
		}
	}
	return all
}

// checkSteps: a step whose result was acknowledged does not run again under a later epoch, and its effect key is the same in all attempts of a
// run.
func checkSteps(f *Facts) (all []Finding) {
	replayed := replays(f)
	type step struct{ execution, name string }
	stored, keys := map[step]int64{}, map[step]string{}
	for _, c := range f.Calls {
		if c.Name == Step && c.Outcome == Done && !replayed[c.Execution] {
			at := step{c.Execution, c.Key}
			if epoch, known := stored[at]; !known || c.Epoch < epoch {
				stored[at] = c.Epoch
			}
		}
	}
	for _, c := range f.Calls {
		if c.Name != Effect || replayed[c.Execution] {
			continue
		}
		at := step{c.Execution, c.Key}
		if old, known := keys[at]; known && old != c.Value {
			all = append(all, found("effect", c.Execution, "the step %s had the effect key %s, then %s", c.Key, old, c.Value))
		}
		keys[at] = c.Value
		// The step was stored under the lease of its epoch, so before any later epoch was granted.
		if epoch, known := stored[at]; known && epoch < c.Epoch {
			all = append(all, found("step", c.Execution, "the step %s ran again under epoch %d, its result was acknowledged under epoch %d", c.Key, c.Epoch, epoch))
		}
	}
	return all
}

// checkBudget: used is the sum of what was accepted, and nothing is reserved any more (I9).
func checkBudget(f *Facts) (all []Finding) {
	total := int64(0)
	replayed := replays(f)
	for _, id := range sorted(f.Usage) {
		used := f.Usage[id]
		total += used
		x, want := f.Executions[id], f.WantUsage[id]
		if x.Status == "succeeded" && used != want && !replayed[id] {
			all = append(all, found("I9", id, "it used %d, and reports %d once", used, want))
		}
		if used != 0 && used != want && !replayed[id] {
			all = append(all, found("I9", id, "it used %d, and reports %d at once or nothing", used, want))
		}
	}
	if b := f.Budget; b.Used != total || b.Reserved != 0 || b.Overrun != 0 || b.Holds != 0 {
		all = append(all, found("I9", "", "the budget counts %+v; the executions used %d", b, total))
	}
	return all
}

func sorted[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
