package unique

import "github.com/flowfabric/flowfabric/internal/core/base"

// Holder is the execution that last took a key, as it is now.
type Holder struct {
	ID        base.ID
	Status    string // as it is shown
	Terminal  bool
	Acquired  bool // a worker got it in its present run
	CreatedAt base.Time
	Creator   string
}

// Submitter is the principal of a submit.
type Submitter struct {
	Name    string
	Operate bool // it has the role operate
}

// Decision is what becomes of a submit. At most one of Existing and Cancel is set.
type Decision struct {
	Take     bool    // the execution is created and takes the key
	Existing base.ID // nothing is created: the answer is this one
	Cancel   base.ID // the holder is cancelled first, in the same transaction
}

// Source and reason of a cancel in favour of another submit.
const (
	CancelSource = "unique"
	CancelReason = "replaced"
)

// Judge decides about a submit (T48, T49). The rule must have passed Check. holder is nil if the key is free, or the record of the holder is gone. A
// submit that is refused is unique_conflict, with the id and the status of the holder.
func (r Rule) Judge(holder *Holder, by Submitter, now base.Time) (Decision, error) {
	if holder == nil || !r.conflicts(holder, now) {
		return Decision{Take: true}, nil
	}
	switch {
	case r.OnConflict == Existing:
		return Decision{Existing: holder.ID}, nil
	case r.OnConflict == Reject:
		return Decision{}, conflict(holder, "another execution has the key")
	case !by.Operate && by.Name != holder.Creator:
		return Decision{}, conflict(holder, "another execution has the key, and only its creator and operators may replace it")
	case holder.Terminal:
		return Decision{Take: true}, nil
	default:
		return Decision{Take: true, Cancel: holder.ID}, nil
	}
}

// conflicts reports whether the holder is in the way.
func (r Rule) conflicts(holder *Holder, now base.Time) bool {
	if r.WindowMS > 0 && now < holder.CreatedAt.Add(r.WindowMS) {
		return true
	}
	switch r.While {
	case Live:
		return !holder.Terminal
	case Queued:
		return !holder.Terminal && !holder.Acquired
	default:
		return false
	}
}

func conflict(holder *Holder, why string) error {
	return base.Errorf(base.CodeUniqueConflict, "%s", why).WithField("unique.key").
		With("execution_id", holder.ID.UUID.String()).With("status", holder.Status)
}
