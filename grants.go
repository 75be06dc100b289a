package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
)

// GrantKey is what a worker claims a grant with. Printed, logged or encoded it hides itself; Reveal gives the text. The zero GrantKey is
// none.
type GrantKey struct{ core.GrantKey }

// GrantKeyOf is the grant key of a text.
func GrantKeyOf(text string) GrantKey { return GrantKey{core.GrantKeyOf(text)} }

// ExecutionID is the execution that the key says it is for; "" when it names none. It does not say that the key is good.
func (k GrantKey) ExecutionID() ID {
	id, ok := k.Target()
	if !ok {
		return ""
	}
	return idOf(id)
}

// Grant is an execution that is promised to one worker for a short time: nobody else may claim it, and it is admitted already. Its worker
// claims it with the key. JSON shows it without the key.
type Grant struct {
	ExecutionID  ID
	PartitionKey string // {fp:N}, as in the full form of the id
	Key          GrantKey
	ExpiresAt    time.Time
}

// GrantRequest asks for grants. It picks as a ClaimRequest does.
type GrantRequest struct {
	WorkerID     string
	InstanceID   string
	Lanes        []string      // 1..64; with ExecutionID none, or the one that it must be in
	Max          int           // 1..1000; 0: 1
	Wait         time.Duration // 0..60 s
	Capabilities []string
	Kinds        []string // none: all
	Namespaces   []string // none: all of the client's; never more
	LaneOrder    string   // "rotate" (default) or "listed"
	// ExecutionID asks for this one, whether it is fresh, resumed or reclaimed. The call then does not wait, and Max, Kinds, Namespaces and
	// LaneOrder have no say. "": whatever comes next.
	ExecutionID ID
	GrantTTL    time.Duration // 1 ms..60 s; 0: 5 s
	RequestKey  string        // makes the call repeatable while its grants are out; minted by the client when empty
	Repeat      bool          // the call was sent before under the same RequestKey: as for a claim
}

// GrantClaim says who claims a grant: it must be the worker and the instance that it is for.
type GrantClaim struct {
	WorkerID   string
	InstanceID string
	LeaseTTL   time.Duration // 500 ms..24 h; 0: 30 s
}

// HandTo names the worker who is to go on with an execution that is taken away from another.
type HandTo = api.HandTo
