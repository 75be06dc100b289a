package service

import (
	"cmp"

	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// action is what every administrator's change carries. It is known by the key of its request (U13).
func (c *Caller) action(f wire.AdminFields, revision *wire.Revision) engine.AdminAction {
	return engine.AdminAction{Reason: f.Reason, RequestKey: cmp.Or(c.RequestKey, c.Key), Revision: (*int64)(revision)}
}
