package wire

import "github.com/flowfabric/flowfabric/api"

// Problem is every answer of 400 and above (U11, RFC 9457).
type Problem = api.Problem
