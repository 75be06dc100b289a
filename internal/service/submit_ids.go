package service

import (
	"context"
	"crypto/rand"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// workID is the id of a submission. A submission without an id has the same one in all tries, so that a repeat finds what the
// first one made (L86).
type workID struct {
	base.GivenID
	minted  bool // the submission has no id of its own
	derived bool // it was derived from the request's key
}

// idOfOne returns the id of the submission of a request. Without a key of the request the key of the call is used.
func (s *Service) idOfOne(ctx context.Context, c *Caller, home string, given *api.Submission) (workID, error) {
	return s.idOfWork(ctx, c, home, given, 0, func() base.UUID {
		if id, ok := base.ParseUUID(c.Key); ok {
			return id
		}
		return mintIDs(s.clock, 1)[0]
	})
}

// idOfWork returns the id of a submission. For a request with a key it is derived from the key, so that the same request again
// finds what it made (U13); index distinguishes the submissions of one request.
func (s *Service) idOfWork(ctx context.Context, c *Caller, home string, given *api.Submission, index int, minted func() base.UUID) (workID, error) {
	if given.ID != "" {
		id, err := base.ParseID(string(given.ID))
		return workID{GivenID: id}, err
	}
	d := engine.Derivation{Namespace: home, RequestKey: c.RequestKey, Index: index}
	switch {
	case c.RequestKey == "" && c.LineKey == "":
		return workID{GivenID: base.IDOf(minted()).Given(), minted: true}, nil
	case c.RequestKey == "":
		d.RequestKey, d.Index, d.Line = c.LineKey, c.Lines[index], true
	}
	id, err := s.engine.DerivedID(ctx, c.client(), d)
	return workID{GivenID: base.IDOf(id).Given(), minted: true, derived: !d.Line}, err
}

// mintedIDs are the ids of the submissions of a batch that have none, by index.
type mintedIDs struct{ all []base.UUID }

// at returns the id of one of n submissions.
func (m *mintedIDs) at(index, n int, c clock.Clock) base.UUID {
	if m.all == nil {
		m.all = mintIDs(c, n)
	}
	return m.all[index]
}

// mintIDs makes ids.
func mintIDs(c clock.Clock, n int) []base.UUID {
	ids := make([]base.UUID, n)
	random := make([][10]byte, n)
	for i := range random {
		rand.Read(random[i][:]) // never fails (crypto/rand)
	}
	var minter base.Minter
	for i := range ids {
		ids[i] = minter.Mint(c.Now(), random[i])
	}
	return ids
}
