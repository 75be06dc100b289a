// Command hello submits a charge, works it off in the same process and prints the receipt.
package main

import (
	"github.com/flowfabric/flowfabric/examples/hello/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.Hello) }
