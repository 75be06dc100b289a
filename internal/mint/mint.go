// Package mint makes the names that a client gives before its first try: of executions and flows, and of calls whose repeats must be
// recognised.
package mint

import (
	"crypto/rand"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ID makes the id of an execution or a flow before the first try, so that a repeat is a duplicate (L86).
func ID(c clock.Clock) api.ID { return api.ID(base.IDOf(uuid(c)).String()) }

// Key makes a request key.
func Key(c clock.Clock) string { return uuid(c).String() }

func uuid(c clock.Clock) base.UUID {
	var random [10]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return new(base.Minter).Mint(c.Now(), random)
}
