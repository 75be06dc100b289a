// Command crash kills a worker process in the middle of its work and shows that nothing is lost and nothing done twice.
package main

import (
	"github.com/flowfabric/flowfabric/examples/crash/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Crash) }
