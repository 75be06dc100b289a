package model

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// account is a second set of books on quotas and budgets, kept as the specification says and without a line of the rules that the
// engine decides by. What is reserved and which slots are in use is never stored: it is summed up from the jobs each time (S42, BI2).
type account struct {
	now    func() base.Time
	did    func(what string) // counts what happened
	quotas map[string]*ration
	gives  []need              // what the namespace gives to its submits
	starts map[string][]*start // by rate key
	purses []*purse            // those that exist
	lanes  map[string]*track
	jobs   []*job
}

// ration is a quota (S36).
type ration struct {
	rate   int
	window base.Millis
	slots  int
	perKey bool
}

// start is one admission of a rate key (S40).
type start struct {
	at   base.Time
	back bool // given back
}

// track is a lane.
type track struct {
	open   bool
	places int // 0: no cap
}

// need is a quota that a job is attached to (S37).
type need struct{ quota, key string }

func (n need) text() string {
	if n.key == "" {
		return n.quota
	}
	return n.quota + "/" + n.key
}

func (n need) rate() string  { return "rate:" + n.text() }
func (n need) slots() string { return "slots:" + n.text() }

// purse is a budget.
type purse struct {
	id       base.UUID
	name     string
	scope    core.BudgetScope
	parent   *purse
	amounts  map[string]*amount
	onHard   string
	forfeits bool
	closed   bool
	schedule schedule
	next     base.Time // reset; 0: none
	epoch    int64
	breaches int64
	soft     int64 // breaches of soft limits
	ledger   map[base.UUID]map[string]int64
	receipts map[string]receipt // of charges
	past     []map[string]int64 // used in the epochs that are over
}

// amount is one dimension of a purse. 0: no limit.
type amount struct {
	hard, soft, reserve int64
	raised, carried     int64
	used, overrun       int64
}

// receipt is what is remembered under a dedup key (B26).
type receipt struct {
	print string
	told  verdict
}

// most is the effective hard limit.
func (a *amount) most() int64 { return a.hard + a.raised + a.carried }

// job is an execution, as far as admission goes.
type job struct {
	id       base.ID
	lane     string
	caps     []string
	tag      string // value of tag t; "": none
	priority int
	queuedAt base.Time
	needs    []need
	given    []need // of these: by the namespace
	named    []*purse
	own      []*purse
	brings   func(own *purse, d *core.BudgetDefinition) // makes a budget for itself; nil: none
	estimate map[string]int64
	keeps    bool // slots_while_waiting=hold
	retries  int  // left

	status     string
	held       bool
	delayUntil base.Time
	next       string
	endsAt     base.Time // of lease or grant
	since      base.Time // its lease was acquired
	runsOutAt  base.Time // the first of its holds of time; 0: none
	reclaims   int
	holds      []string // slots
	before     []string // those that it held before its grant
	charged    []*purse
	reserved   map[*purse]map[string]int64
	starts     []*start // of its grant
	late       bool     // its lease lapsed, and was not taken over
	lapsed     []*purse // to which that was charged
	bereft     bool     // one of these was deleted since
	asked      *purse   // whose approval it waits for
	askedFor   string   // the dimension
	epoch      int64    // of its leases
	meters     map[string]int64
	receipts   map[string]receipt

	to     string                      // instance that it is granted to
	fences map[string]core.Fence       // by store: of its lease, or of the lapsed one
	keys   map[string]keyring.GrantKey // by store
}

// The statuses of a job. One that waits is ready, or blocked by admission: which of the two depends on who looked.
const (
	waits     = "waits"
	heldBack  = "held"
	granted   = "granted"
	runs      = "runs"
	delayed   = "delayed"
	suspends  = "suspended"
	over      = "over"
	resumes   = "resume"
	fresh     = "fresh"
	reclaimed = "reclaim"
)

func (w *account) slotsInUse(key string) int {
	n := 0
	for _, j := range w.jobs {
		if slices.Contains(j.holds, key) {
			n++
		}
	}
	return n
}

func (w *account) reserved(p *purse, dimension string) (sum int64) {
	for _, j := range w.jobs {
		sum += j.reserved[p][dimension]
	}
	return sum
}

// startsIn counts the admissions of a key that count now: each does until the end of its window, that moment excluded (S40).
func (w *account) startsIn(key string, window base.Millis) int {
	n := 0
	for _, s := range w.starts[key] {
		if !s.back && s.at.Add(window) > w.now() {
			n++
		}
	}
	return n
}

// nextFree is the first moment at which fewer than the limit count; 0: now.
func (w *account) nextFree(key string, r *ration) base.Time {
	if r.rate == 0 || w.startsIn(key, r.window) < r.rate {
		return 0
	}
	var ends []base.Time
	for _, s := range w.starts[key] {
		if end := s.at.Add(r.window); !s.back && end > w.now() {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	return ends[len(ends)-r.rate]
}

// line is a purse and those above it.
func (p *purse) line() []*purse {
	var all []*purse
	for ; p != nil; p = p.parent {
		all = append(all, p)
	}
	return all
}

// covers reports whether the scope of a purse reaches the job (B6).
func (p *purse) covers(j *job) bool {
	switch p.scope.Type {
	case core.ScopeNamespace:
		return true
	case core.ScopeLane:
		return p.scope.Value == j.lane
	case core.ScopeTag:
		return j.tag != "" && p.scope.Value == "t="+j.tag
	default:
		return false
	}
}

// set lists the purses that apply to the job in the order of B8.
func (w *account) set(j *job) []*purse {
	var first []*purse
	add := func(some []*purse) {
		slices.SortFunc(some, func(a, b *purse) int { return bytes.Compare(a.id[:], b.id[:]) })
		for _, p := range some {
			if !slices.Contains(first, p) {
				first = append(first, p)
			}
		}
	}
	add(slices.Clone(j.named))
	add(slices.Clone(j.own))
	for _, kind := range []string{core.ScopeTag, core.ScopeLane, core.ScopeNamespace} {
		var some []*purse
		for _, p := range w.purses {
			if p.scope.Type == kind && p.covers(j) {
				some = append(some, p)
			}
		}
		add(some)
	}
	direct := slices.Clone(first)
	for level := 1; level < 8; level++ {
		var some []*purse
		for _, p := range direct {
			if line := p.line(); len(line) > level {
				some = append(some, line[level])
			}
		}
		add(some)
	}
	return first
}

// wants is how much the job reserves of a dimension (B9). Of time that is limited it is what is left, up to a minute (B17).
func (w *account) wants(j *job, p *purse, name string) int64 {
	a := p.amounts[name]
	if n, given := j.estimate[name]; given {
		return n
	}
	if name == core.WallMS && a.hard > 0 && a.reserve == 0 {
		return min(base.Minute, max(w.room(p, name), 0))
	}
	return a.reserve
}

// room is what is neither used nor reserved of a dimension with a limit.
func (w *account) room(p *purse, name string) int64 {
	a := p.amounts[name]
	return a.most() - a.used - w.reserved(p, name)
}

// admits reports whether the purse has room for the job (B9).
func (w *account) admits(p *purse, j *job) bool {
	if p.closed {
		return false
	}
	for name, a := range p.amounts {
		if a.hard > 0 && max(w.wants(j, p, name), 1) > w.room(p, name) {
			return false
		}
	}
	return true
}

// full lists every key that has no room for the job, in the order of S44. What a grant of its own has taken does not count against it.
func (w *account) full(j *job) (keys []string) {
	if j.status == granted {
		kept := *j
		w.giveBack(j)
		defer func() {
			*j = kept
			for _, s := range j.starts {
				s.back = false
			}
		}()
	}
	for _, p := range w.set(j) {
		if !w.admits(p, j) {
			keys = append(keys, core.BudgetKey(p.id))
		}
	}
	for _, n := range j.needs {
		if r := w.quotas[n.quota]; j.next != resumes && r != nil && r.rate > 0 && w.startsIn(n.rate(), r.window) >= r.rate {
			keys = append(keys, n.rate())
		}
	}
	for _, n := range j.needs {
		r := w.quotas[n.quota]
		if r != nil && r.slots > 0 && !slices.Contains(j.holds, n.slots()) && w.slotsInUse(n.slots()) >= r.slots {
			keys = append(keys, n.slots())
		}
	}
	return keys
}

// take takes what an admitted job needs (S44 step 4). A forced claim takes slots alone (S35),
// and is charged like any other (B6).
func (w *account) take(j *job, forced bool) {
	j.before = slices.Clone(j.holds)
	j.starts = nil
	for _, n := range j.needs {
		r := w.quotas[n.quota]
		if r == nil {
			continue
		}
		if !slices.Contains(j.holds, n.slots()) {
			j.holds = append(j.holds, n.slots())
		}
		if r.rate > 0 && j.next != resumes && !forced {
			s := &start{at: w.now()}
			w.starts[n.rate()] = append(w.starts[n.rate()], s)
			j.starts = append(j.starts, s)
		}
	}
	slices.Sort(j.holds)
	j.charged, j.reserved = w.set(j), map[*purse]map[string]int64{}
	for _, p := range j.charged {
		taken := map[string]int64{}
		for name := range p.amounts {
			if n := w.wants(j, p, name); n > 0 && !forced {
				taken[name] = n
			}
		}
		j.reserved[p] = taken
	}
}

// giveBack returns what a grant that ends unused has taken: everything is as before (SI5).
func (w *account) giveBack(j *job) {
	for _, s := range j.starts {
		s.back = true
	}
	j.starts, j.holds, j.charged, j.reserved = nil, j.before, nil, nil
}

// holders counts the leases and grants that are charged to a purse.
func (w *account) holders(p *purse) (n int64) {
	for _, j := range w.jobs {
		if slices.Contains(j.charged, p) {
			n++
		}
	}
	return n
}

// shrink cuts what is carried of a raise to what is still needed (B36).
func (w *account) shrink() {
	for _, p := range w.purses {
		for name, a := range p.amounts {
			if a.carried > 0 {
				a.carried = min(a.carried, max(a.used+w.reserved(p, name)-a.hard-a.raised, 0))
			}
		}
	}
}

// reset begins a new epoch (B36).
func (w *account) reset(p *purse) {
	used := map[string]int64{}
	for name, a := range p.amounts {
		used[name] = a.used
		a.used, a.overrun, a.raised, a.carried = 0, 0, 0, 0
		if a.hard > 0 {
			a.carried = max(w.reserved(p, name)-a.hard, 0)
		}
	}
	p.past = append(p.past, used)
	p.epoch++
	p.ledger = map[base.UUID]map[string]int64{}
}

// byOrder sorts jobs as S6 says.
func byOrder(a, b *job) int {
	const weight = 1_000_000_000_000
	key := func(j *job) int64 { return int64(j.queuedAt) - int64(j.priority)*weight }
	return cmp.Or(cmp.Compare(key(a), key(b)), bytes.Compare(a.id.UUID[:], b.id.UUID[:]))
}

// verdict is the answer to a report or a charge.
type verdict struct {
	Outcome, Action  string
	Applied          bool
	Repeated         bool
	Budget           base.UUID
	Dimension        string
	Remaining        map[base.UUID]map[string]int64
	Breaches, Softer int // how many limits were passed
}

// booking is a report of usage on its way into the books.
type booking struct {
	w     *account
	j     *job // whose ledger and meters; nil: of none
	lines []*purse
	holds bool // the job's own reservation is drawn first
	usage map[string]int64
	spent bool
}

func (b *booking) own(p *purse, name string) int64 {
	if !b.holds {
		return 0
	}
	return b.j.reserved[p][name]
}

// room is what is left for the reporter (B20).
func (b *booking) room(p *purse, name string) int64 {
	return b.w.room(p, name) + b.own(p, name)
}

// breach is a limit that is passed.
type breach struct {
	p    *purse
	name string
}

// tooMuch lists the hard limits that the usage does not fit under, in the order of B8 and then by name.
func (b *booking) tooMuch() (all []breach) {
	for _, p := range b.lines {
		for _, name := range slices.Sorted(maps.Keys(b.usage)) {
			if a := p.amounts[name]; a != nil && a.hard > 0 && b.usage[name] > b.room(p, name) {
				all = append(all, breach{p, name})
			}
		}
	}
	return all
}

// settle is B20..B23 and the counting of B27, without the action.
func (b *booking) settle() (verdict, []breach) {
	v := verdict{Outcome: core.UsageOK, Action: core.ActionNone, Applied: true}
	hard := b.tooMuch()
	var soft []breach
	if len(hard) == 0 || b.spent {
		soft = b.book()
	} else {
		v.Applied = false
	}
	v.Remaining = b.remaining()
	first := hard
	switch {
	case len(hard) > 0:
		v.Outcome, v.Breaches = core.UsageHardBreach, len(hard)
	case len(soft) > 0:
		v.Outcome, v.Softer, first = core.UsageSoftBreach, len(soft), soft
	}
	if len(first) > 0 {
		v.Budget, v.Dimension = first[0].p.id, first[0].name
	}
	countBreaches(hard)
	b.w.shrink()
	return v, hard
}

// countBreaches counts a breach once for each purse (B27).
func countBreaches(hard []breach) {
	counted := map[*purse]bool{}
	for _, one := range hard {
		if !counted[one.p] {
			counted[one.p] = true
			one.p.breaches++
		}
	}
}

// book books what fits as used and the rest as overrun (B21, B22), and lists the soft limits that are passed then.
func (b *booking) book() (soft []breach) {
	for _, p := range b.lines {
		for _, name := range slices.Sorted(maps.Keys(b.usage)) {
			a, delta := p.amounts[name], b.usage[name]
			if a == nil {
				continue
			}
			fit := delta
			if a.hard > 0 {
				fit = min(delta, b.room(p, name))
			}
			if own := b.own(p, name); own > 0 {
				b.j.reserved[p][name] = own - min(delta, own)
			}
			p.use(b.j, name, fit)
			a.overrun += delta - fit
			if a.soft > 0 && a.used > a.soft {
				soft = append(soft, breach{p, name})
			}
		}
	}
	if b.j != nil {
		for name, delta := range b.usage {
			b.j.meters[name] += delta
		}
	}
	return soft
}

// use adds to what is used, counts the soft limits that it passes (B32), and writes the ledger (B25).
func (p *purse) use(j *job, name string, n int64) {
	a := p.amounts[name]
	if a.soft > 0 && a.used <= a.soft && a.used+n > a.soft {
		p.soft++
	}
	a.used += n
	if j == nil || n == 0 {
		return
	}
	if p.ledger[j.id.UUID] == nil {
		p.ledger[j.id.UUID] = map[string]int64{}
	}
	p.ledger[j.id.UUID][name] += n
}

func (b *booking) remaining() map[base.UUID]map[string]int64 {
	left := map[base.UUID]map[string]int64{}
	for _, p := range b.lines {
		for name, a := range p.amounts {
			if a.hard > 0 {
				if left[p.id] == nil {
					left[p.id] = map[string]int64{}
				}
				left[p.id][name] = max(b.room(p, name), 0)
			}
		}
	}
	return left
}

// release gives back what the ledger of this epoch holds for a job (B25).
func (w *account) release(p *purse, j *job) map[string]int64 {
	released := maps.Clone(p.ledger[j.id.UUID])
	for _, of := range p.line() {
		row := of.ledger[j.id.UUID]
		for name, n := range released {
			if n = min(n, row[name]); n > 0 {
				of.amounts[name].used -= n
				row[name] -= n
			}
		}
	}
	w.shrink()
	return released
}
