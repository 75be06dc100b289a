package flowfabric

import (
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of waits (U28..U30, U42, U85). Tokens, and addresses that hold one, are in none of it: whoever may show them does so by name.

// textGiven is a text that may be left out; given as empty it is there, for the rules to refuse.
func textGiven(text string, empty bool) *string {
	if text == "" && !empty {
		return nil
	}
	return &text
}

func textFrom(given *string) (text string, empty bool) {
	if given == nil {
		return "", false
	}
	return *given, *given == ""
}

// MarshalJSON writes the binding as the HTTP API takes it (U29).
func (b Binding) MarshalJSON() ([]byte, error) { return wire.Marshal(b.wire()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (b *Binding) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Binding](text)
	*b = bindingFrom(*w)
	return err
}

func (b Binding) wire() wire.Binding {
	if b.Pending {
		return wire.Binding{UsePending: &wire.PendingWaitpoint{WaitpointID: b.WaitpointID}}
	}
	return wire.Binding{Fresh: &wire.FreshWaitpoint{WaitpointKey: textGiven(b.Key, b.emptyKey), WaitpointID: b.WaitpointID}}
}

func bindingFrom(w wire.Binding) Binding {
	switch {
	case w.UsePending != nil:
		return Binding{WaitpointID: w.UsePending.WaitpointID, Pending: true}
	case w.Fresh != nil:
		b := Binding{WaitpointID: w.Fresh.WaitpointID}
		b.Key, b.emptyKey = textFrom(w.Fresh.WaitpointKey)
		return b
	default:
		return Binding{}
	}
}

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

// loadedWire is the payload as it travels. One with a content type and without bytes was not loaded, and is shown as left out (U10).
func loadedWire(p Payload) wire.Payload {
	if p.Data == nil && p.ContentType != "" {
		return wire.Payload{ContentType: p.ContentType, Omitted: true}
	}
	return wirePayload(p)
}

// MarshalJSON writes how the wait ended, as a task of the HTTP API shows it (U28).
func (r Resume) MarshalJSON() ([]byte, error) {
	w := r.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Resume) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Resumed](text)
	*r = *resumeFrom(w)
	return err
}

func (r *Resume) wire() wire.Resumed {
	return wire.Resumed{
		SuspensionID: r.SuspensionID, Cause: r.Cause, Signals: signals(r.Signals), Children: r.Children,
		ContinuationShown: wire.ShowContinuation(loadedWire(r.Continuation), encodingOf(r.Continuation)),
	}
}

func resumeFrom(w *wire.Resumed) *Resume {
	return &Resume{
		SuspensionID: w.SuspensionID, Cause: w.Cause, Signals: w.Signals, Children: w.Children,
		Continuation: payloadFrom(w.ContinuationShown.Payload()),
	}
}

// signals are never absent.
func signals(all []SignalRecord) []SignalRecord {
	if all == nil {
		return []SignalRecord{}
	}
	return all
}
