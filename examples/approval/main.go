// Command approval lets a release wait for two of three people, who decide by a link or at the console.
package main

import (
	"github.com/flowfabric/flowfabric/examples/approval/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Approval) }
