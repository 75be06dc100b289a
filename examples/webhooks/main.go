// Command webhooks has the events of orders posted to a receiver, which verifies their signatures with the standard library and counts each once.
package main

import (
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/examples/webhooks/story"
)

func main() { stage.Main(story.Webhooks) }
