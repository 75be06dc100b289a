package engine

import (
	crand "crypto/rand"

	"github.com/flowfabric/flowfabric/internal/core"
)

// mint makes a UUIDv7. Its time is the host's: ids order nothing, they only sort well.
func (e *Engine) mint() core.UUID {
	if e.cfg.Mint != nil {
		return e.cfg.Mint()
	}
	var random [10]byte
	crand.Read(random[:]) // never fails
	return core.MintUUID(core.TimeOf(e.cfg.Clock.Now()), random)
}
