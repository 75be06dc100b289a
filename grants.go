package flowfabric

import "github.com/flowfabric/flowfabric/api"

// GrantKey is the key with which a worker claims a grant. It hides itself when printed, logged or encoded; Reveal returns its
// text. The zero GrantKey means none.
type GrantKey = api.GrantKey

// GrantKeyOf returns the grant key with a text.
func GrantKeyOf(text string) GrantKey { return api.GrantKeyOf(text) }

// Grant reserves an execution for one worker for a short time: no other worker may claim it, and it is admitted already. Its
// worker claims it with the key. JSON leaves the key out.
type Grant = api.Grant

// GrantRequest asks for grants. It selects executions as a ClaimRequest does.
type GrantRequest = api.GrantRequest

// GrantClaim identifies who claims a grant: it must be the worker and the instance that it was issued to.
type GrantClaim = api.GrantClaim

// HandTo names the worker that continues an execution that is revoked from another.
type HandTo = api.HandTo
