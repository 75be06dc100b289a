// Command retry-and-cancel shows which failures are retried and when, what cannot be mended by a retry, cancels
// of work and of flows, and a replay of all that failed.
package main

import (
	"github.com/flowfabric/flowfabric/examples/retry-and-cancel/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.RetryAndCancel) }
