package flowfabric

import (
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of waits (U28..U30, U42, U85). Tokens, and addresses that hold one, are in none of it: whoever may show them does so by name.

// noneIfEmpty is nil for a list without elements.
func noneIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// suspendWire is the waitpoint as the answer to a suspend shows it, without its token (U71).
func suspendWire(w *Waitpoint) wire.SuspendWaitpoint {
	return wire.SuspendWaitpoint{WaitpointID: w.ID, WaitpointKey: w.Key, ExpiresAt: wireTime(w.ExpiresAt)}
}

// suspendFrom is a waitpoint of that answer, with its token and its address.
func suspendFrom(w wire.SuspendWaitpoint, suspension string) Waitpoint {
	shown := Waitpoint{ID: w.WaitpointID, Key: w.WaitpointKey, SuspensionID: suspension, ExpiresAt: w.ExpiresAt.Time, CallbackURL: w.CallbackURL}
	if w.Token != "" {
		shown.Token = TokenOf(w.Token)
	}
	return shown
}

// signals are never absent.
func signals(all []SignalRecord) []SignalRecord {
	if all == nil {
		return []SignalRecord{}
	}
	return all
}
