package core

import "hash/fnv"

// The numbers under which executions of a class are filed in the queue. The values are stored: never change them. Executions under one number need
// the same of the same keys, so that a refusal of the first holds for all (S19).
const (
	blockReady   = 0  // ready, and everything of a class that needs nothing
	blockResumed = 1  // ready to resume: no rate admission is needed (S40)
	blockKept    = 2  // ready to resume with the slots that it has kept (S41)
	firstKey     = 16 // from here on: blocked on the key with that number
)

// BlockNumber returns the number under which executions blocked on an admission key are filed (S46); 0 for "". Two keys of one class share a number
// with a probability of one in two billion: the rows of one key may then have to wait for room in the other.
func BlockNumber(key string) int32 {
	if key == "" {
		return blockReady
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int32(h.Sum32()&0x7fff_ffff) | firstKey
}

// ReadyBlocks returns the numbers other than 0 under which ready executions of a class that needs something are filed.
func ReadyBlocks() []int32 { return []int32{blockResumed, blockKept} }

// KeyBlock reports whether executions filed under the number are blocked by admission.
func KeyBlock(number int32) bool { return number >= firstKey }

// Block returns the number under which x is filed while it is Queued.
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
