package core

import (
	"cmp"
	"slices"
)

// AttemptsOf lists the attempts of x by index (L25). Each lease that ended left its attempt in the history as it then was, so
// the newest entry of an attempt tells it all; the last attempt is in the record itself.
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
