package flowfabric

import "github.com/flowfabric/flowfabric/api"

// GrantKeyOf returns the grant key with a text.
func GrantKeyOf(text string) api.GrantKey { return api.GrantKeyOf(text) }
