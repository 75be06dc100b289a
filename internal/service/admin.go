package service

import (
	"cmp"

	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// action returns the options of an administrator's change. Its repeat is identified by the key of the request (U13).
func (c *Caller) action(f wire.AdminFields, revision *wire.Revision) engine.AdminAction {
	return engine.AdminAction{Reason: f.Reason, RequestKey: cmp.Or(c.RequestKey, c.Key), Revision: (*int64)(revision)}
}
