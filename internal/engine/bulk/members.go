package bulk

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	bulkReplay = "replay"
	bulkDelete = "delete"
	bulkTag    = "tag"
)

// actOnMembers replays or deletes the members of flows among some executions of a job, each separately: a replay opens its flow again with all that
// depends on it (F54..F58), and a removal checks the flows around and below (L140). A request key for each makes it happen once, however often the
// batch is tried.
func (e *Jobs) actOnMembers(ctx context.Context, j *job, ids []base.GivenID) (outcomes map[base.UUID]error, err error) {
	want := store.Want{SkipUnreadable: true}
	for _, id := range ids {
		want.Executions = append(want.Executions, id.UUID)
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	outcomes = map[base.UUID]error{}
	for _, id := range ids {
		x := loaded.Executions[id.UUID]
		if x == nil || x.Member == nil || !id.Names(x.ID) || !j.Caller.Sees(x.Class.Namespace) {
			continue
		}
		key := "bulk-" + j.ID.String()
		if !j.Filter.Empty() && !j.Filter.Matches(x, e.Dict.Now().State(x.Class.Lane)) {
			if j.Action == bulkDelete {
				continue
			}
			replayed, err := e.Answered(ctx, replayRequest(j.Caller, x, key))
			if err != nil {
				return nil, err
			}
			if !replayed { // else an earlier try of this batch made it so
				continue
			}
		}
		op := txn.Operator{Reason: j.Reason, RequestKey: key}
		if j.Action == bulkDelete {
			err = e.Delete(ctx, j.Caller, id, op)
		} else {
			_, err = e.Replay(ctx, j.Caller, id, j.Args.ReplayRequest, op)
		}
		if code := base.CodeOf(err); err != nil && (code == "" || code.Info().Retryable) {
			return nil, err
		}
		outcomes[id.UUID] = err
	}
	return outcomes, nil
}

// replayRequest names the record of a replay under a key.
func replayRequest(c txn.Caller, x *core.Execution, key string) store.DocRef {
	ref := txn.RequestRef(c, "replay", x.ID.UUID.String(), key)
	ref.Owner = txn.Owner(x.ID.UUID)
	return ref
}

// Flows are those below the executions that a job deletes, and those of the members that it retains.
func (b *jobBatch) Flows(u *txn.Tx) (locks []base.UUID) {
	doc := u.Doc(jobRef(b.id))
	if doc == nil {
		return nil
	}
	j, err := decodeJob(doc)
	if err != nil {
		return nil
	}
	for _, id := range b.batch.ids {
		switch ent := u.Entries[id.UUID]; {
		case j.Action == "delete":
			locks = append(locks, flows.FlowsBelow(u, id.UUID)...)
		case j.Action == "retain" && ent != nil && ent.Exec.Member != nil:
			locks = append(locks, ent.Exec.FlowID.UUID)
		}
	}
	return locks
}
