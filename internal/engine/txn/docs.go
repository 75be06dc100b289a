package txn

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them.
const (
	DocWorker  store.DocKind = 1 // key: worker_instance_id
	docRequest store.DocKind = 2 // key: digest of the request's scope
	DocClaim   store.DocKind = 3 // key: instance and request key of a claim
	DocStep    store.DocKind = 4 // owner: execution; key: run index and name
	DocSteps   store.DocKind = 5 // owner: execution; how many steps there are, and which runs see which
	DocJob     store.DocKind = 6 // key: job id
	docTask    store.DocKind = 7 // key: task id; follow-up work (DESIGN section 4)

	docAPIKey     store.DocKind = 8  // key: key id
	docNamespace  store.DocKind = 9  // key: name
	DocAuditChain store.DocKind = 10 // key: namespace, * for what belongs to none; the head of its audit chain
	docAuditRow   store.DocKind = 11 // key: namespace and number of the row

	DocJobItems store.DocKind = 12 // key: job id and number of the batch; what it did

	DocAllowance store.DocKind = 13 // key: name of a limit; what all processes have used of it

	docSigningKeys store.DocKind = 14 // one record: the signing keys of the installation

	DocWait          store.DocKind = 15 // owner: execution; every record of its waits, by waitRef
	DocWaitData      store.DocKind = 16 // owner: execution; bytes of a signal or a continuation
	DocWaitpointAt   store.DocKind = 17 // key: waitpoint id; which execution has it
	DocWaitpointOpen store.DocKind = 18 // key: waitpoint id; there while it is open
	DocLinkAt        store.DocKind = 19 // key: link id; which execution has it
	DocSuspended     store.DocKind = 20 // key: namespace, moment and execution; there while that is suspended

	DocBudget     store.DocKind = 21 // key: budget id; its definition and its numbers
	DocBudgetName store.DocKind = 22 // key: namespace and name; which budget has it
	DocBudgetHold store.DocKind = 23 // key: budget and execution; there while that lease or grant is charged to it
	DocLedger     store.DocKind = 24 // key: budget, epoch and execution; what that has used
	DocEpoch      store.DocKind = 25 // key: budget and epoch; how a past one ended
	DocUsageDedup store.DocKind = 26 // owner: execution, or none for a charge; key: dedup key, of a charge behind its budget

	DocRate store.DocKind = 27 // key: rate key; the admissions that may still count

	DocBudgetChild store.DocKind = 28 // key: budget and another below it
	DocBudgetGone  store.DocKind = 37 // key: id of a budget that was deleted; there until what it left is gone

	DocFlow      store.DocKind = 29 // key: flow id
	DocFlowMark  store.DocKind = 30 // key: namespace, moment and flow: how flows are listed
	DocMember    store.DocKind = 31 // owner: flow; key: name; which execution has it, or what is left of one that was deleted
	DocEdge      store.DocKind = 32 // owner: upstream; key: downstream
	DocUpstreams store.DocKind = 33 // owner: downstream; the executions that its edges come from; by other keys children that it waits for, and when it stops
	DocInputs    store.DocKind = 34 // owner: member; its named inputs
	DocSubflow   store.DocKind = 35 // owner: flow node; what its sub-flow is made of
	DocEdgeID    store.DocKind = 36 // owner: flow; key: edge id that a caller gave; which edge has it

	docAuditRoll store.DocKind = 43 // key: number of a list of audit chains, two digits; all are there as soon as there is an audit key
	docIDSecret  store.DocKind = 41 // one record: what ids of requests with keys are derived with
	docProbe     store.DocKind = 42 // one record: written, and removed, to see whether a store that was full has room again
	DocRetention store.DocKind = 40 // one record: the default retention that was last in force; absent: the built-in one
)

// The kinds of rules: they are part of the dictionary. Values are stored: never renumber them.
const (
	DocQuota       store.DocKind = store.FirstRule     // key: quota id
	DocBudgetEntry store.DocKind = store.FirstRule + 1 // key: budget id; to which executions it applies, if that is not said by their records
	docRollbacks   store.DocKind = store.FirstRule + 3 // one record: commits that the database came back without
	DocRemoval     store.DocKind = store.FirstRule + 2 // key: reference to a quota or budget; exists while it is checked whether it may be removed
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerWake     store.TimerKind = 1 // IDs: executions with a timer
	TimerRetain   store.TimerKind = 2 // IDs: finished executions whose retention ends
	TimerKeys     store.TimerKind = 3 // Texts: idempotency keys whose window ends
	timerRequests store.TimerKind = 4 // Texts: owners and keys of recorded requests
	TimerClaims   store.TimerKind = 5 // Texts: keys of recorded claims
	TimerWorkers  store.TimerKind = 6 // Texts: instances to look at
	TimerJobs     store.TimerKind = 7 // Texts: bulk jobs to continue
	timerTasks    store.TimerKind = 8 // Texts: follow-up work of any kind, as earlier releases wrote it
	timerAudit    store.TimerKind = 9 // Texts: audit chains whose oldest rows may go

	TimerAllowances store.TimerKind = 10 // Texts: limits that may be out of use

	timerSigningKeys store.TimerKind = 11 // Texts: kids whose time is over

	TimerRates      store.TimerKind = 12 // Texts: rate keys that have room again
	TimerBudgets    store.TimerKind = 13 // Texts: budgets whose epoch ends
	TimerUsageDedup store.TimerKind = 14 // Texts: keys of recorded charges

	// Texts: follow-up work of one kind. Each has a kind of timer of its own, so that none waits for another (S61).
	timerCountLane     store.TimerKind = 32
	timerRefileLane    store.TimerKind = 33
	timerRetireLane    store.TimerKind = 34
	timerTrimHistory   store.TimerKind = 35
	timerFreeQuota     store.TimerKind = 36
	timerCancelHolders store.TimerKind = 37
	timerFreeBudget    store.TimerKind = 38
	timerFreeUnreached store.TimerKind = 39
	timerDropEpoch     store.TimerKind = 40
	timerDropBudget    store.TimerKind = 41
	timerLeaveBudget   store.TimerKind = 42
	timerUnmark        store.TimerKind = 43
	timerResolveEdges  store.TimerKind = 44
	timerCancelLosers  store.TimerKind = 45
	timerCancelFlow    store.TimerKind = 46
	timerBeginSubflow  store.TimerKind = 47
	timerEndNode       store.TimerKind = 48
	timerEndChildren   store.TimerKind = 49
	timerSpreadBudget  store.TimerKind = 50
	timerRemoveFlow    store.TimerKind = 51
	timerRetireAll     store.TimerKind = 52
	timerSealQuorums   store.TimerKind = 53
)

// WorkerRef names the record of an instance.
func WorkerRef(instanceID string) store.DocRef {
	return store.DocRef{Kind: DocWorker, Key: instanceID}
}

// ClaimRef names the record of a claim. Grants have a space of their own: the same key there is no repeat.
func ClaimRef(r *ClaimRequest) store.DocRef {
	key := r.InstanceID + "\x01" + r.RequestKey
	if r.GrantTTL != 0 {
		key += GrantMark
	}
	return store.DocRef{Kind: DocClaim, Key: key}
}

// GrantMark ends the key of the record of a grant. No request key has such a byte.
const GrantMark = "\x01"

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

// FlowRef names the record of a flow.
func FlowRef(id base.UUID) store.DocRef { return store.DocRef{Kind: DocFlow, Key: id.String()} }

// ReadDoc reads a record back; flows and edges were JSON once, like the others. Codes: corruption.
func ReadDoc(doc *store.Doc, record any) (err error) {
	edge, isEdge := record.(*core.Edge)
	flow, isFlow := record.(*core.Flow)
	switch {
	case isEdge && len(doc.Data) > 0:
		err = store.DecodeEdge(doc.Data, edge)
	case isFlow && len(doc.Data) > 0:
		err = store.DecodeFlow(doc.Data, flow)
	default:
		err = json.Unmarshal(doc.Body, record)
	}
	if err != nil {
		return base.Errorf(base.CodeCorruption, "the stored record %d %q of %q cannot be read: %w", doc.Kind, doc.Key, doc.Owner, err)
	}
	return nil
}
