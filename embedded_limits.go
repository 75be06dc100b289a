package flowfabric

import (
	"context"
	"time"
)

// What servers ask of the engine besides the Client: limits that hold over all of them (U129), and the time (U6).

// TakeRate takes some of what may happen perSecond over all processes on the store; got may be more than want, for later. 0: there is
// none for so long.
func (e *embedded) TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error) {
	got, wait, err = e.engine.TakeRate(ctx, name, perSecond, want)
	return got, wait, publicError(err)
}

// HoldPlaces states how many of most places this process wants to hold from now on, and answers how many it does. It must be stated
// again within 15 s.
func (e *embedded) HoldPlaces(ctx context.Context, name string, most, want int) (int, error) {
	got, err := e.engine.HoldPlaces(ctx, name, most, want)
	return got, publicError(err)
}

// NamespaceRates is how many submits and how many requests a second the namespace allows; 0: it does not say.
func (e *embedded) NamespaceRates(ctx context.Context, namespace string) (submits, requests int, err error) {
	submits, requests, err = e.engine.NamespaceRates(ctx, namespace)
	return submits, requests, publicError(err)
}

// StoreTime is the store's clock as it was last seen, carried on by the host's.
func (e *embedded) StoreTime() time.Time { return e.engine.StoreTime().Std() }
