// Command chat shows the tokens of a language model in the terminal while they come, and kills the worker in the middle of the answer.
package main

import (
	"github.com/flowfabric/flowfabric/examples/chat/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Chat) }
