package flowfabric

import "github.com/flowfabric/flowfabric/api"

// GrantKey is what a worker claims a grant with. Printed, logged or encoded it hides itself; Reveal gives the text. The zero GrantKey is
// none.
type GrantKey = api.GrantKey

// GrantKeyOf is the grant key of a text.
func GrantKeyOf(text string) GrantKey { return api.GrantKeyOf(text) }

// Grant is an execution that is promised to one worker for a short time: nobody else may claim it, and it is admitted already. Its worker
// claims it with the key. JSON shows it without the key.
type Grant = api.Grant

// GrantRequest asks for grants. It picks as a ClaimRequest does.
type GrantRequest = api.GrantRequest

// GrantClaim says who claims a grant: it must be the worker and the instance that it is for.
type GrantClaim = api.GrantClaim

// HandTo names the worker who is to go on with an execution that is taken away from another.
type HandTo = api.HandTo
