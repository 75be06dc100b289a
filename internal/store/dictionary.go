package store

import "github.com/flowfabric/flowfabric/internal/core"

// Dictionary is all lanes and classes at one moment. It is immutable and shared.
type Dictionary struct {
	Version int64
	Lanes   []core.Lane
	Classes []*core.Class
}
