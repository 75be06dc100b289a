// Command tenants lets two tenants share a server: each with keys, limits, a fair share of the workers and an audit log of its own.
package main

import (
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/examples/tenants/story"
)

func main() { stage.Main(story.Tenants) }
