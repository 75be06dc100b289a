// Command race asks five models one question: the first good answer wins, and the others are cancelled.
package main

import (
	"github.com/flowfabric/flowfabric/examples/race/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Race) }
