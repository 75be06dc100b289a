package schedule

import "slices"

// Trim returns which of the oldest rows of the history are deleted (T47), and the record without them. Rows of firings that are open or wait are kept, and the
// one that the next moment may extend.
func (r *Schedule) Trim(oldest []Key) (deleted []Key, after Schedule) {
	after = r.copy()
	excess := max(0, min(r.Rows-int64(r.Definition.HistoryLimit), maxTrimmed))
	for _, k := range oldest {
		if int64(len(deleted)) >= excess {
			break
		}
		if !r.holds(k) {
			deleted = append(deleted, k)
		}
	}
	after.Rows -= int64(len(deleted))
	return deleted, after
}

// holds reports whether the record will write the row of a key again.
func (r *Schedule) holds(k Key) bool {
	has := func(f Firing) bool { return f.Key == k }
	return slices.ContainsFunc(r.Open, has) || slices.ContainsFunc(r.Queue, has) || r.Run != nil && r.Run.Key == k
}
