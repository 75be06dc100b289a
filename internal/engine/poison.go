package engine

import (
	"runtime/debug"

	"github.com/flowfabric/flowfabric/internal/core"
)

// decideAll decides a batch, one command after the other. One that panics has met a fault of this program, and may have left the unit
// in any state: the error gives the transaction up, and the batch is cut until that command is alone. So nobody else suffers for it.
func (u *unit) decideAll(batch []*request) (refusals []error, err error) {
	refusals = make([]error, len(batch))
	at := 0
	defer func() {
		if cause := recover(); cause != nil {
			err = core.Errorf(core.CodeInternal, "%s met a fault of the engine", batch[at].name()).WithHint("its log tells where; nothing was changed")
			if len(batch) == 1 {
				u.e.notes.Error("a command panicked", "command", batch[at].name(), "panic", cause, "stack", string(debug.Stack()))
			}
		}
	}()
	for ; at < len(batch); at++ {
		refusals[at] = batch[at].decide(u)
	}
	return refusals, nil
}
