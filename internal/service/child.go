package service

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ChildOf shows a child as its parent sees it.
func ChildOf(c engine.ChildView) api.Child {
	child := api.Child{Name: c.Name, ID: idOf(c.ID), FailureReason: c.FailureReason}
	if c.Outcome != core.StatusNone {
		child.Outcome = api.Status(c.Outcome.String())
	}
	if c.Result != nil {
		child.HasResult, child.ResultType, child.ResultSize = true, c.Result.ContentType, c.Result.Size
	}
	return child
}
