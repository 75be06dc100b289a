package core

import (
	"cmp"
	"slices"
)

// AttemptsOf lists the attempts of x by index (L25). Each lease that ended has recorded the state of its attempt in the history, so the newest
// entry of an attempt is complete. The last attempt is in the execution record itself.
func AttemptsOf(x *Execution, history []LeaseRecord) []Attempt {
	newest := make(map[int]*LeaseRecord, len(history))
	for i := range history {
		record := &history[i]
		if known := newest[record.Attempt.Index]; known == nil || known.Epoch <= record.Epoch {
			newest[record.Attempt.Index] = record
		}
	}
	attempts := make([]Attempt, 0, len(newest)+1)
	for index, record := range newest {
		if x.Attempt == nil || index != x.Attempt.Index {
			attempts = append(attempts, record.Attempt)
		}
	}
	if x.Attempt != nil {
		attempts = append(attempts, *x.Attempt)
	}
	slices.SortFunc(attempts, func(a, b Attempt) int { return cmp.Compare(a.Index, b.Index) })
	return attempts
}
