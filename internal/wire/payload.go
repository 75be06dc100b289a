package wire

import "github.com/flowfabric/flowfabric/internal/payload"

// The content types that payload fields have by default (U8).
const (
	ContentJSON  = payload.ContentJSON
	ContentText  = payload.ContentText
	ContentBytes = payload.ContentBytes
)
