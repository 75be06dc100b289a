package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Token is the credential of a signal or of a link. When printed, logged or encoded it shows its key instead of the token; Reveal
// returns the text. The zero Token means none.
type Token = api.Token

// TokenOf returns the token with a text.
func TokenOf(text string) Token { return api.TokenOf(text) }
