package metrics

// Histogram bounds, in seconds or, for sizes, in items.
var (
	quick = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	long  = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
	sizes = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// Labels that are used in several rows.
var (
	lane      = Label{Name: "lane"}
	kind      = Label{Name: "kind"}
	namespace = Label{Name: "namespace"}
	command   = Label{Name: "command"}
	followup  = Label{Name: "kind", Values: Followups}
	ending    = Label{Name: "status", Values: []string{"succeeded", "failed", "cancelled", "expired", "skipped"}}
)

// Followups are the kinds of follow-up work after commands.
var Followups = []string{
	"bulk", "count_lane", "refile_lane", "retire_lane", "trim_history", "free_quota", "free_budget", "cancel_holders", "drop_epoch", "drop_budget", "leave_budget", "unmark_rule",
	"resolve_edges", "cancel_losers", "cancel_members", "begin_subflow", "end_node", "end_children", "remove_flow", "spread_budget", "seal_quorums",
	"cancel_deliveries", "erase_webhook",
}

// All is every metric of FlowFabric, in the order of the specification.
func All() []Metric {
	var all []Metric
	for _, m := range []interface{ Describe() Metric }{
		HTTPRequests, HTTPRequestSeconds, HTTPInFlight, HTTPRejected,
		Commands, CommandSeconds, CommitSeconds, CommitBatchSize, CommitQueueDepth,
		Submitted, Started, Ended, Retries, Executions, OldestReadySeconds,
		StartLatencySeconds, RunSeconds, TotalSeconds,
		Claims, ClaimBatchSize, ClaimWaiters, AdmissionRefused,
		LeaseRenewals, LeasesLapsed, LeasesRevoked, Reclaims, Fenced,
		Suspensions, Resumes, ResumeLatencySeconds, Signals, WaitpointsOpen, TokensRefused, Approvals,
		Flows, Joins, FollowupsPending, FollowupSeconds,
		Usage, BudgetBreaches, BudgetRatio, BudgetReserved,
		Frames, FrameBytes, StreamReaders, Events, EventReaders, EventDelaySeconds, WebhookDeliveries, WebhooksPending,
		Workers, WorkerSlots, WorkerTasks, WorkerHandlerSeconds, WorkerLeaseLost, WorkerTransportErrors,
		TimersFired, TimerLatenessSeconds, Quarantined, Panics, Purged, BulkItems,
		StoreQueries, StoreQuerySeconds, StoreErrors, StorePool, StoreBytes, Wakeups, ClockSkewSeconds,
		AuthFailures, AuditRows, BuildInfo,
	} {
		all = append(all, m.Describe())
	}
	return all
}

// Requests of the HTTP server (U200).
var (
	HTTPRequests = Counter{Metric{
		Rule: "U200", Name: "ff_http_requests_total", Type: TypeCounter, Place: Server,
		Labels: []Label{{Name: "route"}, {Name: "method"}, {Name: "code"}},
		Help:   "Requests answered.",
	}}
	HTTPRequestSeconds = Histogram{Metric{
		Rule: "U200", Name: "ff_http_request_seconds", Type: TypeHistogram, Place: Server,
		Labels: []Label{{Name: "route"}, {Name: "method"}}, Buckets: quick,
		Help: "Time to the end of the answer; event streams are not counted.",
	}}
	HTTPInFlight = Gauge{Metric{
		Rule: "U200", Name: "ff_http_in_flight", Type: TypeGauge, Place: Server,
		Labels: []Label{{Name: "group", Values: []string{"call", "poll", "sse"}}},
		Help:   "Requests in progress: ordinary ones (call), waiting ones (poll), event streams (sse).",
	}}
	HTTPRejected = Counter{Metric{
		Rule: "U200", Name: "ff_http_rejected_total", Type: TypeCounter, Place: Server,
		Labels: []Label{{Name: "reason", Values: []string{"auth", "role", "rate", "overload", "size"}}},
		Help:   "Requests refused before they reached the engine.",
	}}
)

// Commands and their transactions (U201).
var (
	Commands = Counter{Metric{
		Rule: "U201", Name: "ff_commands_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{command, {Name: "outcome", Values: []string{"done", "refused", "unknown"}}},
		Help:   "Commands answered: done; refused, without a change; or unknown, because the connection to the store was lost during the commit.",
	}}
	CommandSeconds = Histogram{Metric{
		Rule: "U201", Name: "ff_command_seconds", Type: TypeHistogram, Place: Engine,
		Labels: []Label{command}, Buckets: quick,
		Help: "Time from the acceptance of a command to its answer, including the wait for the commit.",
	}}
	CommitSeconds = Histogram{Metric{
		Rule: "U201", Name: "ff_commit_seconds", Type: TypeHistogram, Place: Engine, Buckets: quick,
		Help: "Duration of a writing transaction, from begin to commit.",
	}}
	CommitBatchSize = Histogram{Metric{
		Rule: "U201", Name: "ff_commit_batch_size", Type: TypeHistogram, Place: Engine, Buckets: sizes,
		Help: "Commands per transaction; a round of claims counts as one.",
	}}
	CommitQueueDepth = Gauge{Metric{
		Rule: "U201", Name: "ff_commit_queue_depth", Type: TypeGauge, Place: Engine,
		Help: "Commands that wait for a transaction.",
	}}
)

// Executions (U202, U203).
var (
	Submitted = Counter{Metric{
		Rule: "U202", Name: "ff_submitted_total", Type: TypeCounter, Place: Engine, Labels: []Label{namespace, lane},
		Help: "Executions created; duplicates are not counted.",
	}}
	Started = Counter{Metric{
		Rule: "U202", Name: "ff_started_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{lane, {Name: "attempt_type", Values: []string{"initial", "retry", "reclaim", "replay"}}},
		Help:   "Attempts started.",
	}}
	Ended = Counter{Metric{
		Rule: "U202", Name: "ff_ended_total", Type: TypeCounter, Place: Engine, Labels: []Label{lane, ending},
		Help: "Executions ended.",
	}}
	Retries = Counter{Metric{
		Rule: "U202", Name: "ff_retries_total", Type: TypeCounter, Place: Engine, Labels: []Label{lane, {Name: "category"}},
		Help: "Failed attempts that will be retried, by category of the failure.",
	}}
	Executions = Gauge{Metric{
		Rule: "U202", Name: "ff_executions", Type: TypeGauge, Place: Engine, Labels: []Label{lane, {Name: "status"}},
		Help: "Executions by status, according to the search index; each status is counted up to 100 000.",
	}}
	OldestReadySeconds = Gauge{Metric{
		Rule: "U202", Name: "ff_oldest_ready_seconds", Type: TypeGauge, Place: Engine, Labels: []Label{lane},
		Help: "How long the oldest ready execution of the lane has been ready; 0 if there is none.",
	}}
	StartLatencySeconds = Histogram{Metric{
		Rule: "U203", Name: "ff_start_latency_seconds", Type: TypeHistogram, Place: Engine, Labels: []Label{lane}, Buckets: long,
		Help: "Time from ready to running.",
	}}
	RunSeconds = Histogram{Metric{
		Rule: "U203", Name: "ff_run_seconds", Type: TypeHistogram, Place: Engine, Labels: []Label{lane, kind}, Buckets: long,
		Help: "Running time of an attempt without waits, recorded when it ends.",
	}}
	TotalSeconds = Histogram{Metric{
		Rule: "U203", Name: "ff_total_seconds", Type: TypeHistogram, Place: Engine, Labels: []Label{lane, ending}, Buckets: long,
		Help: "Time from the submission of an execution to its end.",
	}}
)

// Claims and leases (U204, U205).
var (
	Claims = Counter{Metric{
		Rule: "U204", Name: "ff_claims_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "outcome", Values: []string{"work", "empty", "error"}}},
		Help:   "Claims answered.",
	}}
	ClaimBatchSize = Histogram{Metric{
		Rule: "U204", Name: "ff_claim_batch_size", Type: TypeHistogram, Place: Engine, Buckets: sizes,
		Help: "Executions returned by a claim that found work.",
	}}
	ClaimWaiters = Gauge{Metric{
		Rule: "U204", Name: "ff_claim_waiters", Type: TypeGauge, Place: Engine,
		Help: "Claims that wait for work.",
	}}
	AdmissionRefused = Counter{Metric{
		Rule: "U204", Name: "ff_admission_refused_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "cause", Values: []string{"budget", "rate", "concurrency", "lane_cap"}}},
		Help:   "Attempts to start work that failed because a lane was at its limit, or a budget or quota had no capacity.",
	}}
	LeaseRenewals = Counter{Metric{
		Rule: "U205", Name: "ff_lease_renewals_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "outcome", Values: []string{"done", "refused", "unknown"}}},
		Help:   "Renewals of leases.",
	}}
	LeasesLapsed = Counter{Metric{
		Rule: "U205", Name: "ff_leases_lapsed_total", Type: TypeCounter, Place: Engine, Labels: []Label{lane},
		Help: "Leases that lapsed.",
	}}
	LeasesRevoked = Counter{Metric{
		Rule: "U205", Name: "ff_leases_revoked_total", Type: TypeCounter, Place: Engine,
		Help: "Leases revoked by operators.",
	}}
	Reclaims = Counter{Metric{
		Rule: "U205", Name: "ff_reclaims_total", Type: TypeCounter, Place: Engine, Labels: []Label{lane},
		Help: "Executions taken over after a lost lease.",
	}}
	Fenced = Counter{Metric{
		Rule: "U205", Name: "ff_fenced_total", Type: TypeCounter, Place: Engine, Labels: []Label{command},
		Help: "Commands of workers refused because of an old lease.",
	}}
)

// Suspensions (U206).
var (
	Suspensions = Counter{Metric{
		Rule: "U206", Name: "ff_suspensions_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "reason", Values: []string{
			"waiting_for_signal", "step_boundary", "waiting_for_approval", "waiting_for_callback", "waiting_for_tool_result",
			"waiting_for_operator_review", "manual_pause", "paused_by_policy", "paused_by_budget",
		}}},
		Help: "Executions suspended, by reason code; a suspension that was already satisfied is not counted.",
	}}
	Resumes = Counter{Metric{
		Rule: "U206", Name: "ff_resumes_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "cause", Values: []string{"signal", "operator", "timeout", "budget_approved"}}},
		Help:   "Suspensions that ended with a resume.",
	}}
	ResumeLatencySeconds = Histogram{Metric{
		Rule: "U206", Name: "ff_resume_latency_seconds", Type: TypeHistogram, Place: Engine, Buckets: long,
		Help: "Time from the signal, operator action or timeout that ended a suspension to running again; a requested delay is not counted.",
	}}
	Signals = Counter{Metric{
		Rule: "U206", Name: "ff_signals_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "effect", Values: []string{
			"buffered_for_pending_waitpoint", "resume_condition_satisfied", "appended_to_waitpoint", "appended_to_waitpoint_duplicate",
			"signal_ignored_matcher_failed", "signal_ignored_not_in_condition",
		}}},
		Help: "Signals stored; duplicates are not counted.",
	}}
	WaitpointsOpen = Gauge{Metric{
		Rule: "U206", Name: "ff_waitpoints_open", Type: TypeGauge, Place: Engine,
		Help: "Waitpoints that accept signals, pending and active; counted up to 10000.",
	}}
	TokensRefused = Counter{Metric{
		Rule: "U206", Name: "ff_token_refused_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "cause", Values: []string{
			"shape", "unknown_kid", "expired_kid", "revoked_kid", "unknown_target", "mismatch", "wrong_execution",
		}}},
		Help: "Invalid tokens of waitpoints and links.",
	}}
	Approvals = Counter{Metric{
		Rule: "U206", Name: "ff_approvals_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "decision"}},
		Help: "Decisions by operators and by people with a link, by signal name.",
	}}
)

// Flows, and follow-up work (U207).
var (
	Flows = Counter{Metric{
		Rule: "U207", Name: "ff_flows_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "state", Values: []string{"completed", "failed", "cancelled"}}},
		Help: "Flows that have ended.",
	}}
	Joins = Counter{Metric{
		Rule: "U207", Name: "ff_joins_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "policy", Values: []string{"all_of", "any_of", "quorum"}}, {Name: "result", Values: []string{"satisfied", "impossible"}}},
		Help:   "Joins of flow members that were decided.",
	}}
	FollowupsPending = Gauge{Metric{
		Rule: "U207", Name: "ff_followups_pending", Type: TypeGauge, Place: Engine,
		Labels: []Label{followup},
		Help:   "Follow-up work of commands that is not finished.",
	}}
	FollowupSeconds = Histogram{Metric{
		Rule: "U207", Name: "ff_followup_seconds", Type: TypeHistogram, Place: Engine,
		Labels: []Label{followup}, Buckets: long,
		Help: "Time from the command to the end of its follow-up work.",
	}}
)

// Streams (U209).
var (
	Frames = Counter{Metric{
		Rule: "U209", Name: "ff_frames_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "mode", Values: []string{"durable", "summary", "best_effort"}}},
		Help: "Frames appended to streams.",
	}}
	FrameBytes = Counter{Metric{
		Rule: "U209", Name: "ff_frame_bytes_total", Type: TypeCounter, Place: Engine,
		Help: "Bytes of the frames appended to streams.",
	}}
	StreamReaders = Gauge{Metric{
		Rule: "U209", Name: "ff_stream_readers", Type: TypeGauge, Place: Engine,
		Help: "Readers that wait at the end of a stream.",
	}}
)

// The event log (U210).
var (
	Events = Counter{Metric{
		Rule: "U210", Name: "ff_events_total", Type: TypeCounter, Place: Engine, Labels: []Label{kind},
		Help: "Events written.",
	}}
	EventReaders = Gauge{Metric{
		Rule: "U210", Name: "ff_event_readers", Type: TypeGauge, Place: Engine,
		Help: "Readers that follow the event log.",
	}}
	EventDelaySeconds = Histogram{Metric{
		Rule: "U210", Name: "ff_event_delay_seconds", Type: TypeHistogram, Place: Engine, Buckets: quick,
		Help: "Time from the commit of events until readers of this process can see them.",
	}}
	WebhookDeliveries = Counter{Metric{
		Rule: "U210", Name: "ff_webhook_deliveries_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "outcome", Values: []string{"delivered", "failed", "dead", "cancelled"}}},
		Help:   "Attempts to deliver events to webhooks, and deliveries that were cancelled. After failed, another attempt follows.",
	}}
	WebhooksPending = Gauge{Metric{
		Rule: "U210", Name: "ff_webhooks_pending", Type: TypeGauge, Place: Engine,
		Help: "Deliveries of webhooks that are not finished.",
	}}
)

// Workers, from the view of the engine and in their own process (U211).
var (
	Workers = Gauge{Metric{
		Rule: "U211", Name: "ff_workers", Type: TypeGauge, Place: Engine,
		Labels: []Label{{Name: "status", Values: []string{"live", "draining", "dead"}}},
		Help:   "Registered workers.",
	}}
	WorkerSlots = Gauge{Metric{
		Rule: "U211", Name: "ff_worker_slots", Type: TypeGauge, Place: Engine,
		Labels: []Label{{Name: "state", Values: []string{"busy", "free"}}},
		Help:   "Slots of workers: held leases (busy), and further capacity of live workers that report it (free).",
	}}
	WorkerTasks = Gauge{Metric{
		Rule: "U211", Name: "ff_worker_tasks", Type: TypeGauge, Place: Worker, Labels: []Label{kind},
		Help: "Tasks of this worker, from the claim until the result is acknowledged.",
	}}
	WorkerHandlerSeconds = Histogram{Metric{
		Rule: "U211", Name: "ff_worker_handler_seconds", Type: TypeHistogram, Place: Worker,
		Labels: []Label{kind, {Name: "outcome", Values: HandlerOutcomes}}, Buckets: long,
		Help: "Running time of handlers, by result of the task: handed_back was delayed or given back, lost had no lease any more when its handler returned.",
	}}
	WorkerLeaseLost = Counter{Metric{
		Rule: "U211", Name: "ff_worker_lease_lost_total", Type: TypeCounter, Place: Worker,
		Labels: []Label{{Name: "cause", Values: []string{LossLapsed, LossRevoked, LossCancelled, LossDeadline, LossAttemptTimeout, LossBudget}}},
		Help:   "Leases lost before their task ended: lapsed, given up in time, or taken over by another worker.",
	}}
	WorkerTransportErrors = Counter{Metric{
		Rule: "U211", Name: "ff_worker_transport_errors_total", Type: TypeCounter, Place: Worker,
		Help: "Calls of the worker that did not reach the engine.",
	}}
)

// Results of a task when its handler returns.
const (
	HandlerSucceeded  = "succeeded"
	HandlerFailed     = "failed"
	HandlerHandedBack = "handed_back"
	HandlerLost       = "lost"
)

// HandlerOutcomes are all results of a task.
var HandlerOutcomes = []string{HandlerSucceeded, HandlerFailed, HandlerHandedBack, HandlerLost}

// Why a worker loses a lease.
const (
	LossLapsed         = "lapsed"
	LossRevoked        = "revoked"
	LossCancelled      = "cancelled"
	LossDeadline       = "deadline"
	LossAttemptTimeout = "attempt_timeout"
	LossBudget         = "budget_exceeded"
)

// Budgets (U208).
var (
	Usage = Counter{Metric{
		Rule: "U208", Name: "ff_usage_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "dimension"}},
		Help: "Usage of executions, with or without budgets: as reported, and the duration of leases (wall_ms).",
	}}
	BudgetBreaches = Counter{Metric{
		Rule: "U208", Name: "ff_budget_breaches_total", Type: TypeCounter, Place: Engine, Labels: []Label{
			{Name: "dimension"}, {Name: "limit", Values: []string{"soft", "hard"}}, {Name: "action", Values: []string{"none", "failed", "suspended", "cancelled"}},
		},
		Help: "Budget limits that were exceeded, or would have been, and the effect on the reporting execution.",
	}}
	BudgetRatio = Gauge{Metric{
		Rule: "U208", Name: "ff_budget_ratio", Type: TypeGauge, Place: Engine, Labels: []Label{{Name: "budget"}, {Name: "dimension"}},
		Help: "Used fraction of a hard limit, 1 being all; for budgets that share a label, the highest.",
	}}
	BudgetReserved = Gauge{Metric{
		Rule: "U208", Name: "ff_budget_reserved", Type: TypeGauge, Place: Engine, Labels: []Label{{Name: "budget"}, {Name: "dimension"}},
		Help: "Amount reserved for leases and grants.",
	}}
)

// Timers, upkeep and bulk jobs (U212).
var (
	TimersFired = Counter{Metric{
		Rule: "U212", Name: "ff_timers_fired_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "kind", Values: []string{
			"execution", "retention", "idempotency_key", "request", "claim", "worker", "bulk", "followup", "frames", "audit", "allowance", "signing_key", "rate", "budget", "charge", "webhook",
		}}},
		Help: "Timers processed for the first time, by purpose.",
	}}
	TimerLatenessSeconds = Histogram{Metric{
		Rule: "U212", Name: "ff_timer_lateness_seconds", Type: TypeHistogram, Place: Engine, Buckets: quick,
		Help: "Time from the due time of a timer until it was processed.",
	}}
	Quarantined = Gauge{Metric{
		Rule: "U212", Name: "ff_quarantined", Type: TypeGauge, Place: Engine,
		Help: "Rows that this process has set aside because processing them fails: executions, timers and follow-up work. Each is retried after a delay that grows to 5 minutes.",
	}}
	Panics = Counter{Metric{
		Rule: "U212", Name: "ff_panics_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "place", Values: []string{
			"command", "claim", "timer", "followup", "commit", "search", "log", "hint", "upkeep",
		}}},
		Help: "Panics of the engine that were recovered, by place; each is a bug. The log has the stack.",
	}}
	Purged = Counter{Metric{
		Rule: "U212", Name: "ff_purged_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "what", Values: []string{
			"execution", "lease_record", "idempotency_key", "request", "claim", "worker", "bulk_job", "audit_row", "class",
			"charge", "spend", "epoch",
		}}},
		Help: "Rows removed at the end of their retention, or by an operator.",
	}}
	BulkItems = Counter{Metric{
		Rule: "U212", Name: "ff_bulk_items_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "action"}, {Name: "outcome", Values: []string{"done", "refused"}}},
		Help: "Executions processed by bulk jobs.",
	}}
)

// The store (U213).
var (
	StoreQueries = Counter{Metric{
		Rule: "U213", Name: "ff_store_queries_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "statement"}},
		Help: "SQL statements run, by name.",
	}}
	StoreQuerySeconds = Histogram{Metric{
		Rule: "U213", Name: "ff_store_query_seconds", Type: TypeHistogram, Place: Engine, Labels: []Label{{Name: "statement"}}, Buckets: quick,
		Help: "Duration of a statement, including its result. On SQLite, where a statement takes a microsecond, one in 64 is measured.",
	}}
	StoreErrors = Counter{Metric{
		Rule: "U213", Name: "ff_store_errors_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "class", Values: []string{"broken", "conflict", "stale", "busy", "retry", "unavailable", "unknown"}}},
		Help:   "Failed calls of the store, by effect on the transaction. Callers rarely notice conflict, stale, busy and retry, because the engine retries.",
	}}
	StorePool = Gauge{Metric{
		Rule: "U213", Name: "ff_store_pool", Type: TypeGauge, Place: Engine,
		Labels: []Label{{Name: "state", Values: []string{"busy", "idle", "max"}}},
		Help:   "Connections to the database.",
	}}
	StoreBytes = Gauge{Metric{
		Rule: "U213", Name: "ff_store_bytes", Type: TypeGauge, Place: Engine,
		Help: "Size of the database on disk, in bytes.",
	}}
	Wakeups = Counter{Metric{
		Rule: "U213", Name: "ff_wakeups_total", Type: TypeCounter, Place: Engine,
		Labels: []Label{{Name: "source", Values: []string{"channel", "notify", "poll"}}},
		Help:   "Wake-ups by source: work stored by this process (channel), notifications of other processes (notify), polling of the store (poll).",
	}}
	ClockSkewSeconds = Gauge{Metric{
		Rule: "U213", Name: "ff_clock_skew_seconds", Type: TypeGauge, Place: Engine,
		Help: "How far the host's clock is ahead of the store's.",
	}}
)

// Access and build (U214).
var (
	AuthFailures = Counter{Metric{
		Rule: "U214", Name: "ff_auth_failures_total", Type: TypeCounter, Place: Server, Labels: []Label{{Name: "reason"}},
		Help: "Requests with wrong credentials.",
	}}
	AuditRows = Counter{Metric{
		Rule: "U214", Name: "ff_audit_rows_total", Type: TypeCounter, Place: Engine, Labels: []Label{{Name: "action"}},
		Help: "Rows written to the audit log.",
	}}
	BuildInfo = Gauge{Metric{
		Rule: "U214", Name: "ff_build_info", Type: TypeGauge, Place: Server,
		Labels: []Label{{Name: "version"}, {Name: "commit"}, {Name: "go"}, {Name: "store"}, {Name: "schema"}},
		Help:   "1, with what runs here as labels.",
	}}
)
