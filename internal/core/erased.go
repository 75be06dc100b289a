package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// ErasedMember is what a finished flow keeps of a member that was deleted individually (L141): its place in the graph and how it ended, so that the
// flow stays complete. Input, result, tags, attempts and everything else of the execution is deleted.
type ErasedMember struct {
	ID        base.ID           `json:"id"`
	FlowID    base.ID           `json:"flow_id"`
	At        base.Time         `json:"deleted_at"`
	Namespace string            `json:"namespace"`
	Lane      string            `json:"lane"`
	Kind      string            `json:"kind"`
	Status    Status            `json:"status"`
	Reason    Reason            `json:"reason"`
	Run       int               `json:"run"`
	Member    Membership        `json:"member"`
	Retention RetentionByStatus `json:"retention"` // by its policy: how long it keeps its flow from removal

	CreatedAt   base.Time `json:"created_at"`
	StartedAt   base.Time `json:"started_at,omitzero"`
	CompletedAt base.Time `json:"completed_at"`
}

// Erased returns what the flow of x keeps of it.
func (x *Execution) Erased(at base.Time) ErasedMember {
	return ErasedMember{
		ID: x.ID, FlowID: x.FlowID, At: at, Namespace: x.Class.Namespace, Lane: x.Class.Lane, Kind: x.Class.Kind, Status: x.Status, Reason: x.Reason,
		Run: x.RunIndex(), Member: *x.Member, Retention: x.Policy.Retention,
		CreatedAt: x.CreatedAt, StartedAt: x.StartedAt, CompletedAt: x.CompletedAt,
	}
}

// Execution returns the member as far as its flow keeps it, for reading only.
func (m *ErasedMember) Execution() *Execution {
	return &Execution{
		ID: m.ID, Class: &Class{Namespace: m.Namespace, Lane: m.Lane, Kind: m.Kind}, FlowID: m.FlowID, Member: &m.Member,
		Policy: &Policy{Retention: m.Retention}, Status: m.Status, Reason: m.Reason, ReplayCount: m.Run,
		CreatedAt: m.CreatedAt, StartedAt: m.StartedAt, CompletedAt: m.CompletedAt, LastMutationAt: m.At,
	}
}

// CheckErasable returns nil if a member may be deleted individually, which requires that all enclosing flows have ended (L140). Errors:
// execution_not_terminal, retained naming the cause.
func (x *Execution) CheckErasable(now base.Time, around []*Flow) error {
	if !x.Status.Terminal() {
		return x.refuse(base.CodeExecutionNotTerminal)
	}
	if err := x.CheckRetained(now); err != nil {
		return err
	}
	for _, f := range around {
		if !f.Finished() {
			return base.Errorf(base.CodeRetained, "the flow that the execution is part of has not ended").With("cause", "flow").
				With("flow_id", f.ID.String()).With("root_flow_id", x.RootFlowID().String()).WithHint("delete it when the outermost flow has ended")
		}
	}
	return nil
}

// MemberDeleted is the refusal of a replay that needs data of a deleted member.
func MemberDeleted(name string) *base.Error {
	return base.Errorf(base.CodeMemberDeleted, "the replay needs the member %s, which was deleted", name).With("name", name)
}
