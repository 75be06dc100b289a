package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Token is the credential of a signal or of a link. Printed, logged or encoded it shows its key and not itself; Reveal gives the
// text. The zero Token is none.
type Token = api.Token

// TokenOf is the token of a text.
func TokenOf(text string) Token { return api.TokenOf(text) }
