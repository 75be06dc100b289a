// Command order-tx writes an order and the work for it in one transaction of one database: both are there, or neither.
package main

import (
	"github.com/flowfabric/flowfabric/examples/order-tx/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() { stage.Main(story.OrderTx) }
