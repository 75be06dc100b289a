package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of grants (U31, U64). Keys are in none of it: whoever may show one does so by name.

// MarshalJSON writes the grant as the HTTP API shows it, without its key (U31).
func (g Grant) MarshalJSON() ([]byte, error) { return wire.Marshal(g.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (g *Grant) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Grant](text)
	*g = grantFrom(*w)
	return err
}

func (g Grant) wire() wire.Grant {
	return wire.Grant{ExecutionID: string(g.ExecutionID), PartitionKey: g.PartitionKey, ExpiresAt: wireTime(g.ExpiresAt)}
}

func grantFrom(w wire.Grant) Grant {
	return Grant{ExecutionID: ID(w.ExecutionID), PartitionKey: w.PartitionKey, Key: GrantKeyOf(w.GrantKey), ExpiresAt: w.ExpiresAt.Time}
}

// MarshalJSON writes the answer as the HTTP API shows it (U50).
func (r Revocation) MarshalJSON() ([]byte, error) {
	w := wire.Revocation{Outcome: r.Outcome, Cause: r.Cause, LeaseID: r.LeaseID, LeaseEpoch: r.Epoch, HandToError: problemOf(r.HandToErr)}
	if r.Grant != nil {
		grant := r.Grant.wire()
		w.Grant = &grant
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Revocation) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Revocation](text)
	*r = revocationFrom(w)
	return err
}

func revocationFrom(w *wire.Revocation) Revocation {
	r := Revocation{Outcome: w.Outcome, Cause: w.Cause, LeaseID: w.LeaseID, Epoch: w.LeaseEpoch, HandToErr: refusalFrom(w.HandToError)}
	if w.Grant != nil {
		grant := grantFrom(*w.Grant)
		r.Grant = &grant
	}
	return r
}
