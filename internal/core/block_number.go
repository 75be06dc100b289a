package core

import "hash/fnv"

// The numbers under which a class files its executions in the queue. Values are stored: never change them. Those under one number need
// the same of the same keys, so that a refusal of the first speaks for all (S19).
const (
	blockReady   = 0  // ready, and whatever belongs to a class that needs nothing
	blockResumed = 1  // ready to go on: no admission of a rate is needed (S40)
	blockKept    = 2  // ready to go on with the slots that it has kept (S41)
	firstKey     = 16 // from here on: blocked on the key with that number
)

// BlockNumber is the number under which executions blocked on an admission key are filed (S46); 0 for "". Two keys of one class may
// share a number, one in two thousand million: then the rows of one may have to wait for room in the other.
func BlockNumber(key string) int32 {
	if key == "" {
		return blockReady
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int32(h.Sum32()&0x7fff_ffff) | firstKey
}

// ReadyBlocks are the numbers besides 0 under which a class that needs something files what is ready.
func ReadyBlocks() []int32 { return []int32{blockResumed, blockKept} }

// KeyBlock reports whether executions filed under the number are blocked by admission.
func KeyBlock(number int32) bool { return number >= firstKey }

// Block is the number under which x is filed while it is Queued.
func (x *Execution) Block() int32 {
	switch {
	case x.BlockedOn != "":
		return BlockNumber(x.BlockedOn)
	case x.Class.Needs == "" || x.Next != NextResume:
		return blockReady
	case len(x.Holds) > 0:
		return blockKept
	default:
		return blockResumed
	}
}
