package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of signing keys (U105). What an outcome has is there even when it is nothing; what it has not is absent.

// MarshalJSON writes the list as the HTTP API shows it (U105).
func (l SigningKeyList) MarshalJSON() ([]byte, error) {
	w := wire.SigningKeyList{CurrentKid: l.CurrentKid, Keys: []wire.SigningKey{}}
	for _, k := range l.Keys {
		w.Keys = append(w.Keys, k.wire())
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *SigningKeyList) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.SigningKeyList](text)
	*l = signingKeyListFrom(w)
	return err
}

func signingKeyListFrom(w *wire.SigningKeyList) SigningKeyList {
	return SigningKeyList{CurrentKid: w.CurrentKid, Keys: each(w.Keys, signingKeyFrom)}
}

// MarshalJSON writes the key as the HTTP API shows it (U105).
func (k SigningKey) MarshalJSON() ([]byte, error) { return wire.Marshal(k.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *SigningKey) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.SigningKey](text)
	*k = signingKeyFrom(*w)
	return err
}

func (k SigningKey) wire() wire.SigningKey {
	return wire.SigningKey{
		Kid: k.Kid, State: k.State, CreatedAt: wireTime(k.CreatedAt), VerifyUntil: wireTime(k.VerifyUntil), RevokedAt: wireTime(k.RevokedAt),
	}
}

func signingKeyFrom(w wire.SigningKey) SigningKey {
	return SigningKey{Kid: w.Kid, State: w.State, CreatedAt: w.CreatedAt.Time, VerifyUntil: w.VerifyUntil.Time, RevokedAt: w.RevokedAt.Time}
}

// MarshalJSON writes the outcome as the HTTP API shows it (U105).
func (r SeedResult) MarshalJSON() ([]byte, error) {
	w := wire.SeededKey{Outcome: r.Outcome, Kid: r.Kid}
	if r.Outcome == OutcomeAlreadySeeded {
		w.SameSecret, w.State = &r.SameSecret, r.State
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *SeedResult) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.SeededKey](text)
	*r = seedResultFrom(w)
	return err
}

func seedResultFrom(w *wire.SeededKey) SeedResult {
	r := SeedResult{Outcome: w.Outcome, Kid: w.Kid, State: w.State}
	if w.SameSecret != nil {
		r.SameSecret = *w.SameSecret
	}
	return r
}

// MarshalJSON writes the outcome as the HTTP API shows it (U105).
func (r RotateResult) MarshalJSON() ([]byte, error) {
	w := wire.RotatedKey{Outcome: r.Outcome}
	if r.Outcome == OutcomeRotated {
		w.NewKid, w.PreviousKid, w.PurgedCount, w.Reactivated = r.Kid, r.PreviousKid, &r.PurgedCount, &r.Reactivated
	} else {
		w.Kid = r.Kid
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *RotateResult) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.RotatedKey](text)
	*r = rotateResultFrom(w)
	return err
}

func rotateResultFrom(w *wire.RotatedKey) RotateResult {
	r := RotateResult{Outcome: w.Outcome, Kid: w.Kid + w.NewKid, PreviousKid: w.PreviousKid} // one of the two is there
	if w.PurgedCount != nil {
		r.PurgedCount = *w.PurgedCount
	}
	if w.Reactivated != nil {
		r.Reactivated = *w.Reactivated
	}
	return r
}

// MarshalJSON writes the outcome as the HTTP API shows it (U105).
func (r RevokeResult) MarshalJSON() ([]byte, error) { return wire.Marshal(wire.RevokedKey(r)) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *RevokeResult) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.RevokedKey](text)
	*r = RevokeResult(*w)
	return err
}
