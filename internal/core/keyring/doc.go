// Package keyring holds what is secret or signed: signing keys and their rotation, master keys that seal them, tokens of waitpoints and links, keys of
// grants, the key of the audit log, and API keys.
//
// Bytes of secrets leave it only by methods named Reveal, and for storing. It knows no execution and no waitpoint: callers hand it the fields that are
// signed. Time and random bytes are arguments. It imports base and the standard library alone.
package keyring
