package bulk

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/claims"
	"github.com/flowfabric/flowfabric/internal/engine/inspect"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Limits of bulk jobs (L137, L138).
const (
	bulkBatch      = 500
	bulkCountLimit = 100_000
	bulkSample     = 20
	maxBulkRate    = 1_000_000
	bulkKeptFor    = 7 * base.Day // a finished job can be looked at for so long
)

// job is a bulk job: durable, done in batches, each row at most once (L138).
type job struct {
	ID        base.UUID         `json:"job_id"`
	Caller    txn.Caller        `json:"caller"`
	Action    string            `json:"action"`
	Args      BulkArgs          `json:"args,omitzero"`
	Filter    core.Filter       `json:"filter,omitzero"`
	IDs       []base.GivenID    `json:"ids,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	State     string            `json:"state"`
	Total     int               `json:"total"`
	Done      int               `json:"done"`
	Refused   map[base.Code]int `json:"refused,omitempty"`
	Failed    int               `json:"failed,omitempty"`
	StartedAt base.Time         `json:"started_at"`
	EndedAt   base.Time         `json:"ended_at,omitzero"`
	Cursor    string            `json:"cursor,omitempty"` // of the list: rows before it are done
	Next      int               `json:"next,omitempty"`   // of IDs

	Rate        int       `json:"rate_per_second,omitempty"` // 0: as fast as it goes
	NotBefore   base.Time `json:"not_before,omitzero"`       // with a rate: the next batch, for which a timer stands
	Batches     int       `json:"batches,omitempty"`         // that left items behind
	KeptDone    int       `json:"kept_done,omitempty"`
	KeptRefused int       `json:"kept_refused,omitempty"`
}

func jobRef(id base.UUID) store.DocRef { return store.DocRef{Kind: docJob, Key: id.String()} }

func (j *job) view() BulkView {
	return BulkView{
		JobID: j.ID, Action: j.Action, State: j.State, Total: j.Total, Done: j.Done, Refused: j.Refused, Failed: j.Failed,
		StartedAt: j.StartedAt, EndedAt: j.EndedAt, RatePerSecond: j.Rate,
	}
}

// Bulk starts a durable job over the executions that match, or counts them without changing anything (L137).
func (e *Jobs) Bulk(ctx context.Context, c txn.Caller, r BulkRequest) (BulkView, error) {
	if err := checkBulk(&r); err != nil {
		return BulkView{}, err
	}
	r.IDs = eachOnce(r.IDs)
	cmd := &startJob{caller: c, req: r}
	if r.RequestKey != "" && !r.DryRun {
		cmd.request = txn.RequestRef(c, "bulk", strings.Join(c.Namespaces, " "), r.RequestKey)
		cmd.fingerprint = txn.Fingerprint(r.Action, r.Args, r.Filter, r.IDs, r.All, r.Reason, r.RatePerSecond, r.MaxAffected)
	}
	if r.DryRun {
		now, err := e.ServerTime(ctx)
		if err != nil {
			return BulkView{}, err
		}
		if err := r.Args.checkAt(now); err != nil {
			return BulkView{}, err
		}
		matched, sample, err := e.bulkMatches(ctx, c, &r)
		return BulkView{Action: r.Action, Total: matched, Sample: sample, DryRun: err == nil}, err
	}
	err := e.Prepare(ctx, cmd.request, func() error { return cmd.match(ctx, e) }) // what matches now is of no interest to a repeat
	return e.startBulk(ctx, c, cmd, err)
}

// match finds the executions of the job.
func (s *startJob) match(ctx context.Context, e *Jobs) error {
	r := &s.req
	matched, _, err := e.bulkMatches(ctx, s.caller, r)
	if err != nil {
		return err
	}
	if r.MaxAffected != nil && matched > *r.MaxAffected {
		return base.Errorf(base.CodeBulkLimitExceeded, "more than %d executions match", *r.MaxAffected).
			With("matched", matched).With("max_affected", *r.MaxAffected)
	}
	s.job = job{ID: e.Mint(), Caller: s.caller, Action: r.Action, Args: r.Args, Filter: r.Filter, IDs: r.IDs, Reason: r.Reason, State: "running", Total: matched, Rate: r.RatePerSecond}
	return nil
}

// eachOnce removes duplicates: each execution is handled at most once (L138). A UUID alone is unique in a store (L2), so its bare form equals every
// full form of it.
func eachOnce(ids []base.GivenID) []base.GivenID {
	bare := make(map[base.UUID]bool, len(ids))
	for _, id := range ids {
		bare[id.UUID] = bare[id.UUID] || !id.Full
	}
	var once []base.GivenID
	named := make(map[base.GivenID]bool, len(ids))
	for _, id := range ids {
		if bare[id.UUID] {
			id = base.GivenID{UUID: id.UUID}
		}
		if !named[id] {
			named[id] = true
			once = append(once, id)
		}
	}
	return once
}

func (e *Jobs) startBulk(ctx context.Context, c txn.Caller, cmd *startJob, err error) (BulkView, error) {
	if err == nil {
		err = e.Do(ctx, cmd)
	}
	if err != nil {
		return BulkView{}, err
	}
	return e.BulkStatus(ctx, c, cmd.answer)
}

func checkBulk(r *BulkRequest) error {
	if bulkActions[r.Action] == nil {
		return base.Invalid("action", "unknown action %q", r.Action).
			WithHint("use cancel, replay, priority, hold, release_hold, resume, signal, tag, retain or delete")
	}
	if err := r.Args.check(r.Action); err != nil {
		return err
	}
	if err := base.CheckReason("reason", r.Reason); err != nil {
		return err
	}
	if r.RequestKey != "" {
		if err := base.CheckRequestKey(r.RequestKey); err != nil {
			return err
		}
	}
	if err := claims.Under("filter", r.Filter.Validate()); err != nil {
		return err
	}
	if r.MaxAffected != nil && (*r.MaxAffected < 0 || *r.MaxAffected > bulkCountLimit) {
		return base.Invalid("max_affected", "must be in 0..%d", bulkCountLimit)
	}
	if r.RatePerSecond < 0 || r.RatePerSecond > maxBulkRate {
		return base.Invalid("rate_per_second", "must be in 0..%d", maxBulkRate)
	}
	given := 0
	for _, is := range []bool{!r.Filter.Empty(), len(r.IDs) > 0, r.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return base.Invalid("filter", "give exactly one of a filter that is not empty, ids, or all")
	}
	return nil
}

// bulkMatches counts what the job would change, exactly up to its bound, and returns some of it.
func (e *Jobs) bulkMatches(ctx context.Context, c txn.Caller, r *BulkRequest) (int, []base.ID, error) {
	if len(r.IDs) > 0 {
		sample := []base.ID{}
		for _, id := range r.IDs[:min(len(r.IDs), bulkSample)] {
			sample = append(sample, id.ID())
		}
		return len(r.IDs), sample, nil
	}
	w, err := e.NewWalk(c, r.Filter, store.CreatedAsc, "")
	if err != nil {
		return 0, nil, err
	}
	if err := e.Follower.ReachAll(ctx); err != nil { // what a job may touch is counted, not guessed
		return 0, nil, err
	}
	page, err := w.Page(ctx, bulkSample)
	if err != nil {
		return 0, nil, err
	}
	sample := []base.ID{}
	for _, item := range page.Items {
		sample = append(sample, item.Execution.ID)
	}
	w.Query.After = nil
	limit := bulkCountLimit
	if r.MaxAffected != nil && !r.DryRun {
		limit = *r.MaxAffected + 1
	}
	n, err := w.Count(ctx, limit)
	return n, sample, err
}

// startJob writes a job down.
type startJob struct {
	caller      txn.Caller
	req         BulkRequest
	job         job
	request     store.DocRef
	fingerprint string
	answer      base.UUID
}

func (s *startJob) Name() string { return "bulk" }

func (s *startJob) Want(w *store.Want, _ bool) {
	if s.request.Key != "" {
		w.Docs = append(w.Docs, s.request)
	}
}

func (s *startJob) Decide(u *txn.Tx) error {
	if repeated, err := u.Repeated(s.caller, s.request, s.fingerprint, &s.answer); repeated || err != nil {
		return err
	}
	if err := s.req.Args.checkAt(u.Now); err != nil {
		return err
	}
	j := s.job
	j.StartedAt = u.Now
	s.answer = j.ID
	j.put(u)
	timer := u.TimerAt(timerJobs, u.Now) // due at once
	timer.Texts = append(timer.Texts, j.ID.String())
	j.bulkEvent(u, "bulk.started", s.caller)
	if admin.Audits(s.caller) {
		j.audit(u, s.caller, "bulk", j.Reason, nil, map[string]any{
			"action": j.Action, "args": j.Args.withoutPayload(), "filter": j.Filter, "ids": len(j.IDs), "total": j.Total,
		})
	}
	u.RecordRequest(s.request, s.fingerprint, s.answer)
	return nil
}

// By returns the caller.
func (s *startJob) By() txn.Caller { return s.caller }

func (s *startJob) Chains(*txn.Tx) []string {
	if !admin.Audits(s.caller) {
		return nil
	}
	return []string{admin.ChainOf(s.caller.Namespaces)}
}

// audit writes the audit row of a bulk job: one row for all that it does (U56).
func (j *job) audit(u *txn.Tx, c txn.Caller, action, reason string, before, after any) {
	admin.Audit(u, c, core.AuditRow{
		Namespace: admin.ChainOf(j.Caller.Namespaces), Action: action, Entity: "bulk", EntityID: j.ID.String(), Reason: reason,
	}, before, after)
}

func (j *job) put(u *txn.Tx) {
	body, _ := json.Marshal(j)
	u.PutDoc(store.Doc{DocRef: jobRef(j.ID), Body: body})
}

func (j *job) bulkEvent(u *txn.Tx, kind string, c txn.Caller) {
	data, _ := json.Marshal(map[string]any{
		"job_id": j.ID, "action": j.Action, "filter": j.Filter, "total": j.Total, "done": j.Done, "refused": j.Refused, "failed": j.Failed,
	})
	namespace := ""
	if len(j.Caller.Namespaces) == 1 {
		namespace = j.Caller.Namespaces[0]
	}
	u.Changes.Events = append(u.Changes.Events, core.Event{
		Kind: kind, At: u.Now, Namespace: namespace, AttemptIndex: -1, Actor: core.Actor{Type: c.Actor, ID: c.Principal}, RequestID: c.RequestID, Data: eventdata.OfJSON(data),
	})
}

func decodeJob(doc *store.Doc) (*job, error) {
	var j job
	if err := json.Unmarshal(doc.Body, &j); err != nil {
		return nil, txn.Corrupt("bulk job", err)
	}
	return &j, nil
}

// BulkStatus shows a job.
func (e *Jobs) BulkStatus(ctx context.Context, c txn.Caller, id base.UUID) (BulkView, error) {
	j, err := e.readJob(ctx, c, id)
	if err != nil {
		return BulkView{}, err
	}
	return j.view(), nil
}

func (e *Jobs) readJob(ctx context.Context, c txn.Caller, id base.UUID) (*job, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{jobRef(id)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	if doc, ok := loaded.Docs[jobRef(id)]; ok {
		if j, err := decodeJob(&doc); err != nil || j.seenBy(c) {
			return j, err
		}
	}
	return nil, base.Errorf(base.CodeJobNotFound, "no job %s", id)
}

// seenBy reports whether the caller may see the job: all its namespaces are the caller's (W5).
func (j *job) seenBy(c txn.Caller) bool {
	if c.Namespaces == nil {
		return true
	}
	return j.Caller.Namespaces != nil && !slices.ContainsFunc(j.Caller.Namespaces, func(ns string) bool { return !c.Sees(ns) })
}

// WaitBulk shows a job when it has ended, or as it is when d is over (U58).
func (e *Jobs) WaitBulk(ctx context.Context, c txn.Caller, id base.UUID, d time.Duration) (BulkView, error) {
	return txn.WaitFor(ctx, e.Engine, id, d, func(ctx context.Context) (BulkView, bool, error) {
		view, err := e.BulkStatus(ctx, c, id)
		return view, view.State != "running", err
	})
}

// BulkJobsPage lists the jobs that are still known, newest first, a part at a time.
func (e *Jobs) BulkJobsPage(ctx context.Context, c txn.Caller, cursor string, limit *int) (views []BulkView, next string, err error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	const scope = "bulk jobs"
	before := ""
	if cursor != "" {
		key, err := core.DecodeCursor(scope, cursor)
		if err != nil {
			return nil, "", err
		}
		before = string(key)
	}
	all, err := e.BulkJobs(ctx, c)
	if err != nil {
		return nil, "", err
	}
	first := slices.IndexFunc(all, func(v BulkView) bool { return before == "" || v.JobID.String() < before })
	if first < 0 || n == 0 {
		return []BulkView{}, "", nil
	}
	if all = all[first:]; len(all) > n {
		all = all[:n]
		next = core.EncodeCursor(scope, []byte(all[n-1].JobID.String()))
	}
	return all, next, nil
}

// BulkJobs lists the jobs that are still known, newest first.
func (e *Jobs) BulkJobs(ctx context.Context, c txn.Caller) ([]BulkView, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docJob}}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	views := []BulkView{}
	for i := range loaded.Scanned[0] {
		j, err := decodeJob(&loaded.Scanned[0][i])
		if err != nil {
			return nil, err
		}
		if j.seenBy(c) {
			views = append(views, j.view())
		}
	}
	slices.Reverse(views) // ids are in order of time
	return views, nil
}

// Running returns how the jobs that are not done stand.
func (e *Jobs) Running(ctx context.Context) (r inspect.RunningJobs, err error) {
	jobs, err := e.BulkJobs(ctx, txn.Caller{})
	for _, job := range jobs { // the newest first
		if job.State == "running" {
			r = inspect.RunningJobs{Count: r.Count + 1, Oldest: job.JobID, Since: job.StartedAt, Done: job.Done, Total: job.Total}
		}
	}
	return r, err
}

// StopBulk ends a job; what is done stays done (L138).
func (e *Jobs) StopBulk(ctx context.Context, c txn.Caller, id base.UUID, reason string) (BulkView, error) {
	if err := base.CheckReason("reason", reason); err != nil {
		return BulkView{}, err
	}
	if _, err := e.readJob(ctx, c, id); err != nil {
		return BulkView{}, err
	}
	stop := &stopJob{caller: c, id: id, reason: reason}
	if c.RequestKey != "" {
		stop.request, stop.fingerprint = txn.RequestRef(c, stop.Name(), id.String(), c.RequestKey), txn.Fingerprint(reason)
	}
	if err := e.Do(ctx, stop); err != nil {
		return BulkView{}, err
	}
	return e.BulkStatus(ctx, c, id)
}

// stopJob ends a running job.
type stopJob struct {
	caller      txn.Caller
	id          base.UUID
	reason      string
	request     store.DocRef // zero: no request key
	fingerprint string
}

func (s *stopJob) Name() string { return "stop_bulk" }

func (s *stopJob) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, jobRef(s.id))
	w.LockDocs = true
	if s.request.Key != "" {
		w.Docs = append(w.Docs, s.request)
	}
}

// running is the job if there is something to stop.
func (s *stopJob) running(u *txn.Tx) (*job, error) {
	doc := u.Doc(jobRef(s.id))
	if doc == nil {
		return nil, nil
	}
	j, err := decodeJob(doc)
	if err != nil || j.State != "running" {
		return nil, err
	}
	return j, nil
}

// By returns the caller.
func (s *stopJob) By() txn.Caller { return s.caller }

func (s *stopJob) Chains(u *txn.Tx) []string {
	j, err := s.running(u)
	if j == nil || err != nil || !admin.Audits(s.caller) {
		return nil
	}
	return []string{admin.ChainOf(j.Caller.Namespaces)}
}

func (s *stopJob) Decide(u *txn.Tx) error {
	if repeated, err := u.Repeated(s.caller, s.request, s.fingerprint, nil); repeated || err != nil {
		return err
	}
	j, err := s.running(u)
	if err != nil {
		return err
	}
	u.RecordRequest(s.request, s.fingerprint, nil)
	if j == nil {
		return nil
	}
	if admin.Audits(s.caller) {
		j.audit(u, s.caller, "stop_bulk", s.reason, map[string]any{"state": j.State}, map[string]any{"state": "stopped"})
	}
	j.end(u, s.caller, "stopped")
	return nil
}

// end closes the job.
func (j *job) end(u *txn.Tx, c txn.Caller, state string) {
	j.State, j.EndedAt = state, u.Now
	j.put(u)
	timer := u.TimerAt(timerJobs, txn.RoundUp(u.Now.Add(bulkKeptFor), base.Hour))
	timer.Texts = append(timer.Texts, j.ID.String())
	j.bulkEvent(u, "bulk.finished", c)
	u.After = append(u.After, func() {
		u.Engine.Meter.Followed(followupBulk, j.StartedAt, j.EndedAt)
		u.Engine.Waiters.Wake(j.ID)
	})
}

// followupBulk is the label of bulk jobs among the follow-ups.
const followupBulk = "bulk"

// jobOf returns the job that an event names.
func jobOf(ev *core.Event) base.UUID {
	var data struct {
		ID base.UUID `json:"job_id"`
	}
	_ = json.Unmarshal(ev.Data.JSON(), &data) // the engine wrote it; a wrong job wakes no waiter
	return data.ID
}
