package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// GrantKey is what a worker claims a grant with. Printed, logged or encoded it hides itself; Reveal gives the text. The zero GrantKey is
// none.
type GrantKey struct{ keyring.GrantKey }

// GrantKeyOf is the grant key of a text.
func GrantKeyOf(text string) GrantKey { return GrantKey{keyring.GrantKeyOf(text)} }

// ExecutionID is the execution that the key says it is for; "" when it names none. It does not say that the key is good.
func (k GrantKey) ExecutionID() ID {
	id, ok := k.Target()
	if !ok || id.IsZero() {
		return ""
	}
	return ID(id.String())
}

// Grant is an execution that is promised to one worker for a short time: nobody else may claim it, and it is admitted already. Its worker
// claims it with the key. JSON shows it without the key.
type Grant struct {
	ExecutionID  ID        `json:"execution_id" doc:"Id of the execution."`
	PartitionKey string    `json:"partition_key" doc:"{fp:N}, as in the full form of the id."`
	Key          GrantKey  `json:"-" apart:"true"`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"When it ends unless it is claimed before."`
}

// RevealedGrant is a grant as it is shown to whoever asked for it: with its key.
type RevealedGrant struct {
	ExecutionID  ID        `json:"execution_id" doc:"Id of the execution."`
	PartitionKey string    `json:"partition_key" doc:"{fp:N}, as in the full form of the id."`
	GrantKey     string    `json:"grant_key,omitempty" doc:"What its worker claims it with. A secret: it is shown to whoever asked for it alone."`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"When it ends unless it is claimed before."`
}

// Revealed shows the key of the grant.
func (g Grant) Revealed() RevealedGrant {
	return RevealedGrant{ExecutionID: g.ExecutionID, PartitionKey: g.PartitionKey, GrantKey: g.Key.Reveal(), ExpiresAt: g.ExpiresAt}
}

// Concealed is the grant with its key, which it shows to nobody.
func (g RevealedGrant) Concealed() Grant {
	return Grant{ExecutionID: g.ExecutionID, PartitionKey: g.PartitionKey, Key: GrantKeyOf(g.GrantKey), ExpiresAt: g.ExpiresAt}
}

// GrantRequest asks for grants. It picks as a ClaimRequest does.
type GrantRequest struct {
	WorkerID     string        `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker that the work is for."`
	InstanceID   string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of its process."`
	Lanes        []string      `json:"lanes,omitempty" doc:"Lanes to take from, 1 to 64. With execution_id none, or the one that it must be in."`
	Max          int           `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"Grants at most; 1 if absent."`
	Wait         time.Duration `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"Wait so long while there is no work."`
	Capabilities []string      `json:"capabilities,omitempty" doc:"What the worker can do."`
	Kinds        []string      `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
	Namespaces   []string      `json:"namespaces,omitempty" doc:"Namespaces to take from; all of the key's if absent."` // never more
	LaneOrder    string        `json:"lane_order,omitempty" enum:"rotate,listed" doc:"Whether lanes take turns; rotate if absent."`
	GrantTTL     time.Duration `json:"grant_ttl_ms,omitempty" minimum:"1" maximum:"60000" doc:"5000 if absent."`
	// ExecutionID asks for this one, whether it is fresh, resumed or reclaimed. The call then does not wait, and Max, Kinds, Namespaces and
	// LaneOrder have no say. "": whatever comes next.
	ExecutionID ID     `json:"execution_id,omitempty" doc:"This one only, fresh, resumed or reclaimed; the call then does not wait, and max, kinds, namespaces and lane_order have no say."`
	RequestKey  string `json:"-" apart:"true"` // makes the call repeatable while its grants are out; minted by the client when empty
	Repeat      bool   `json:"-" apart:"true"` // the call was sent before under the same RequestKey: as for a claim
}

// GrantClaim says who claims a grant: it must be the worker and the instance that it is for.
type GrantClaim struct {
	WorkerID   string        `json:"worker_id" required:"true" maxLength:"256" doc:"The worker that it is for."`
	InstanceID string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"The instance that it is for."`
	LeaseTTL   time.Duration `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
}

// Revocation is the answer to a revoke.
type Revocation struct {
	Outcome string // revoked, already_satisfied
	// Cause is already_revoked or already_expired where the outcome is already_satisfied, and the code of HandToErr where that is set.
	Cause     string
	LeaseID   string
	Epoch     int64
	Grant     *Grant // for the worker that it is handed to; nil: to nobody
	HandToErr error  // why it could not be handed over; the lease is taken away all the same
}

// HandTo names the worker who is to go on with an execution that is taken away from another.
type HandTo struct {
	WorkerID     string        `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
	InstanceID   string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of its process."`
	Capabilities []string      `json:"capabilities,omitempty" doc:"What it can do."`
	GrantTTL     time.Duration `json:"grant_ttl_ms,omitempty" minimum:"1" maximum:"60000" doc:"5000 if absent."`
}

// MarshalJSON writes it as the HTTP API takes it.
func (h HandTo) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (h *HandTo) UnmarshalJSON(text []byte) error { return readRequest(text, h) }

// MarshalJSON writes the grant as the HTTP API shows it, without its key.
func (g Grant) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&g) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, with the key where an answer has it.
func (g *Grant) UnmarshalJSON(text []byte) error {
	var revealed RevealedGrant
	err := readAnswer(text, &revealed)
	*g = revealed.Concealed()
	return err
}

// MarshalJSON writes the grant as the HTTP API shows it to whoever asked for it.
func (g RevealedGrant) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&g) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (g *RevealedGrant) UnmarshalJSON(text []byte) error { return readAnswer(text, g) }

// RevealedRevocation is a revocation as it is shown to whoever revoked: with the key of the grant.
type RevealedRevocation struct {
	Outcome     string         `json:"outcome" enum:"revoked,already_satisfied" doc:"Whether this call revoked."`
	Cause       string         `json:"cause,omitempty" doc:"Why there was nothing to do, or the code of why it was not handed over."`
	LeaseID     string         `json:"lease_id,omitempty" doc:"The lease."`
	Epoch       int64          `json:"lease_epoch,omitempty" doc:"Its epoch."`
	Grant       *RevealedGrant `json:"grant,omitempty" doc:"For the worker that it is handed to."`
	HandToError *Problem       `json:"hand_to_error,omitempty" doc:"Why it could not be handed over; the lease is taken away all the same."`
}

// Concealed is the revocation with the key of the grant, which it shows to nobody.
func (r RevealedRevocation) Concealed() Revocation {
	concealed := Revocation{Outcome: r.Outcome, Cause: r.Cause, LeaseID: r.LeaseID, Epoch: r.Epoch, HandToErr: r.HandToError.Refusal()}
	if r.Grant != nil {
		grant := r.Grant.Concealed()
		concealed.Grant = &grant
	}
	return concealed
}

// Revealed shows the key of the grant.
func (r Revocation) Revealed() RevealedRevocation {
	shown := RevealedRevocation{Outcome: r.Outcome, Cause: r.Cause, LeaseID: r.LeaseID, Epoch: r.Epoch, HandToError: ProblemOf(r.HandToErr)}
	if r.Grant != nil {
		grant := r.Grant.Revealed()
		shown.Grant = &grant
	}
	return shown
}

// MarshalJSON writes the answer as the HTTP API shows it, without the key of the grant.
func (r Revocation) MarshalJSON() ([]byte, error) {
	shown := r.Revealed()
	if shown.Grant != nil {
		shown.Grant.GrantKey = ""
	}
	return jsonx.Marshal(&shown)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Revocation) UnmarshalJSON(text []byte) error {
	var revealed RevealedRevocation
	err := readAnswer(text, &revealed)
	*r = revealed.Concealed()
	return err
}

// MarshalJSON writes the answer as the HTTP API shows it to whoever revoked.
func (r RevealedRevocation) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *RevealedRevocation) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes it as the HTTP API takes it.
func (r GrantRequest) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (r *GrantRequest) UnmarshalJSON(text []byte) error { return readRequest(text, r) }

// MarshalJSON writes it as the HTTP API takes it.
func (c GrantClaim) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (c *GrantClaim) UnmarshalJSON(text []byte) error { return readRequest(text, c) }
