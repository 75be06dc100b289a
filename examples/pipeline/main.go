// Command pipeline brings a release from its build to all machines as one graph: tests in parallel, an approval, a roll-out that is a flow
// of its own, an alarm when a test fails, and a replay of what was skipped.
package main

import (
	"github.com/flowfabric/flowfabric/examples/pipeline/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Pipeline) }
