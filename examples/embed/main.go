// Command embed is an ordinary net/http program with engine, worker and server inside it.
package main

import (
	"github.com/flowfabric/flowfabric/examples/embed/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Embed) }
