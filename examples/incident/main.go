// Command incident lets responders die until the engine gives up, and an operator replay the work.
package main

import (
	"github.com/flowfabric/flowfabric/examples/incident/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Incident) }
