package txn

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records of the kernel; each room declares its own, in its kinds.go. Values are stored: never renumber them. The tests of the tree
// find a number that is given twice.
const (
	DocWorker  store.DocKind = 1  // key: worker_instance_id
	DocRequest store.DocKind = 2  // key: digest of the request's scope
	docTask    store.DocKind = 7  // key: task id; follow-up work (DESIGN section 4)
	docProbe   store.DocKind = 42 // one record: written, and removed, to see whether a store that was full has room again
)

// The kinds of timers of the kernel. Values are stored: never renumber them.
const (
	timerWake     store.TimerKind = 1 // IDs: executions with a timer
	TimerRetain   store.TimerKind = 2 // IDs: finished executions whose retention ends
	TimerKeys     store.TimerKind = 3 // Texts: idempotency keys whose window ends
	timerRequests store.TimerKind = 4 // Texts: owners and keys of recorded requests
	TimerWorkers  store.TimerKind = 6 // Texts: instances to look at
	timerTasks    store.TimerKind = 8 // Texts: follow-up work of any kind, as earlier releases wrote it
)

// WorkerRef names the record of an instance.
func WorkerRef(instanceID string) store.DocRef {
	return store.DocRef{Kind: DocWorker, Key: instanceID}
}

// EncodeKey and decodeKey write an idempotency key into a timer.
func EncodeKey(k store.Key) string {
	return string(rune('0'+k.Space)) + k.Namespace + "\x01" + k.Text
}

func decodeKey(text string) (store.Key, bool) {
	if text == "" {
		return store.Key{}, false
	}
	for i := 1; i < len(text); i++ {
		if text[i] == 1 {
			return store.Key{Space: store.KeySpace(text[0] - '0'), Namespace: text[1:i], Text: text[i+1:]}, true
		}
	}
	return store.Key{}, false
}

// ownerEnd ends the owner where a text names a doc with its owner.
const ownerEnd = "/"

// Owner is the Owner of an execution's docs.
func Owner(id base.UUID) string { return id.String() }
