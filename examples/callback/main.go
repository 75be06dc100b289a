// Command callback waits for a payment provider, which may answer before anybody waits, and more than once.
package main

import (
	"github.com/flowfabric/flowfabric/examples/callback/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Callback) }
