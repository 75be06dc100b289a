// Command budget answers prompts under a budget of tokens: estimates are reserved, a soft limit warns, and the hard one asks for more.
package main

import (
	"github.com/flowfabric/flowfabric/examples/budget/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Budget) }
