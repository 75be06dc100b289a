package stream

import "github.com/flowfabric/flowfabric/internal/core/base"

// Policy bounds the frames that are kept of each attempt. It is part of the policy of an execution and does not change. Its fields must be within the
// bounds stated here; nothing here checks them.
type Policy struct {
	MaxFrames  int    // durable frames, 1..1,000,000
	MaxBytes   int64  // bytes of their payloads, 65,536..1 GiB
	OnFull     string // DropOldest or Refuse
	BestEffort BestEffortPolicy
}

// BestEffortPolicy states how many best-effort frames are kept.
type BestEffortPolicy struct {
	TTLMS   base.Millis // frames are kept twice as long; 1,000..600,000
	Floor   int         // 1..16,384
	Ceiling int         // Floor..65,536
	Alpha   float64     // weight of the newest rate, 0 < Alpha <= 1
}

// What happens when there is no room for a durable frame.
const (
	DropOldest = "drop_oldest" // the oldest durable frames are dropped
	Refuse     = "refuse"      // the call is refused: stream_full
)

// Bounds of frames and calls (E1, E7, E9, E10, E15).
const (
	MaxCallFrames  = 256
	MaxCallBytes   = 1 << 20 // bytes of payloads in a call
	MaxPayload     = 64 << 10
	MaxType        = 64
	MaxCorrelation = 128
	maxContentType = 128
	MaxPatches     = 64 // summary frames that are retained
	MaxNesting     = 16 // objects and arrays inside one another in a patch, the patch itself included
	MaxDocument    = 256 << 10
	MaxPageBytes   = 4 << 20 // bytes of payloads in a page
)
