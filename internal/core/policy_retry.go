package core

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// RetryPolicy states whether and when a failed attempt is followed by another (L92..L94).
type RetryPolicy struct {
	MaxRetries   int
	Strategy     string      // BackoffExponential or BackoffFixed
	InitialMS    base.Millis // exponential only
	MaxMS        base.Millis // exponential only
	Multiplier   float64     // exponential only
	DelayMS      base.Millis // fixed only
	Jitter       float64
	Categories   []string        // empty: all
	MaxElapsedMS base.Millis     // 0: no bound
	ByCategory   []CategoryRetry // sorted by name
	LeftOut      RetryMembers    // members that the text does not state: Filled gives them their defaults
}

// CategoryRetry counts and delays retries after failures of one category or class separately from all others.
type CategoryRetry struct {
	Name       string
	MaxRetries *int         // nil: that of the policy
	Backoff    *RetryPolicy // only its backoff; nil: that of the policy
}

// RetryMembers are the members of a retry policy whose default is not the value that the stored form leaves out. A bit set: values are stored.
type RetryMembers uint8

// The members of RetryMembers.
const (
	RetryCountLeftOut RetryMembers = 1 << iota // max_retries
	RetryMaxLeftOut                            // backoff.max_ms
)

// RetryOrigin says where the retry policy of an execution came from. Values are stored.
type RetryOrigin uint8

// The origins of a retry policy. An execution from before there were defaults has RetryGiven, with or without a retry policy.
const (
	RetryGiven   RetryOrigin = iota // its submission
	RetryDefault                    // base.DefaultMaxRetries and so on
	RetryOfLane                     // the default policy of its lane, when it was submitted
)

// The backoff strategies of L11.
const (
	BackoffExponential = base.BackoffExponential
	BackoffFixed       = base.BackoffFixed
)

// maxCategoryRetries is the maximum number of categories with a count or backoff of their own.
const maxCategoryRetries = 32

// storedRetry is the meaning of a stored `{}`. It is part of the stored form and of fingerprints (L83), so that it never changes: a member that a
// caller left out has this value and its bit in LeftOut until Filled replaces it.
func storedRetry() *RetryPolicy {
	return &RetryPolicy{MaxRetries: 3, Strategy: BackoffExponential, InitialMS: 1000, MaxMS: base.Minute, Multiplier: 2}
}

// defaultRetry is the retry policy of an execution about which neither its submission nor its lane says anything.
var defaultRetry = &RetryPolicy{
	MaxRetries: base.DefaultMaxRetries, Strategy: BackoffExponential, InitialMS: base.DefaultInitialMS, MaxMS: base.DefaultMaxMS, Multiplier: base.DefaultMultiplier,
}

// defaultRetried is the default policy with it, and defaultRetriedText its stored form: those of most executions.
var (
	defaultRetried     = defaultPolicy.withRetry(defaultRetry)
	defaultRetriedText = defaultRetried.write(false)
)

func (p *Policy) withRetry(r *RetryPolicy) *Policy {
	changed := *p
	changed.Retry = r
	return &changed
}

// Filled returns r with the defaults of the members that its text left out.
func (r *RetryPolicy) Filled() *RetryPolicy {
	if r == nil || r.LeftOut == 0 {
		return r
	}
	filled := *r
	if r.LeftOut&RetryCountLeftOut != 0 {
		filled.MaxRetries = base.DefaultMaxRetries
	}
	if r.LeftOut&RetryMaxLeftOut != 0 {
		filled.MaxMS = max(base.DefaultMaxMS, r.InitialMS)
	}
	filled.LeftOut = 0
	return &filled
}

// Filled returns p with the defaults of the members that its retry policy left out.
func (p *Policy) Filled() *Policy {
	if p.Retry == nil || p.Retry.LeftOut == 0 {
		return p
	}
	return p.withRetry(p.Retry.Filled())
}

// ShownAs returns the policy of the submission of an execution that shows p, as far as that can be told: without a retry policy that is a
// default. from is the second result of Execution.Retry.
func (p *Policy) ShownAs(from string) *Policy {
	if from == "submission" || from == "none" || from == "" || p.Retry == nil {
		return p
	}
	return p.withRetry(nil)
}

// frozenPolicy returns the policy with which the execution of s is created, and where its retries come from: from the submission, else from the
// lane, else from the default. A flow node has no attempts and gets none.
func (s *Submission) frozenPolicy() (policy *Policy, origin RetryOrigin, leftOut RetryMembers) {
	switch given := s.Policy.Retry; {
	case given != nil && given.LeftOut != 0:
		return s.Policy.withRetry(given.Filled()), RetryGiven, given.LeftOut
	case given != nil || s.Member != nil && s.Member.Subflow:
		return s.Policy, RetryGiven, 0
	case s.LaneRetry != nil:
		return s.Policy.withRetry(s.LaneRetry.Filled()), RetryOfLane, 0
	case s.Policy == defaultPolicy:
		return defaultRetried, RetryDefault, 0
	default:
		return s.Policy.withRetry(defaultRetry), RetryDefault, 0
	}
}

// GivenPolicy returns the policy as the submission of x stated it: without a default retry policy, and with the stored values of members that were
// left out. It has the fingerprint of that submission (L83).
func (x *Execution) GivenPolicy() *Policy {
	switch {
	case x.Policy == defaultRetried:
		return defaultPolicy
	case x.RetryOrigin != RetryGiven:
		return x.Policy.withRetry(nil)
	case x.RetryLeftOut == 0:
		return x.Policy
	}
	given := *x.Policy.Retry
	given.LeftOut = x.RetryLeftOut
	if given.LeftOut&RetryCountLeftOut != 0 {
		given.MaxRetries = storedRetry().MaxRetries
	}
	if given.LeftOut&RetryMaxLeftOut != 0 {
		given.MaxMS = max(storedRetry().MaxMS, given.InitialMS)
	}
	return x.Policy.withRetry(&given)
}

func (r *policyReader) retry(into **RetryPolicy) error {
	retry := storedRetry()
	retry.LeftOut = RetryCountLeftOut | RetryMaxLeftOut
	*into = retry
	return r.Object(func(key string) error {
		switch key {
		case "max_retries":
			retry.LeftOut &^= RetryCountLeftOut
			return r.Count(&retry.MaxRetries, 0, 10_000)
		case "backoff":
			return r.backoff(retry)
		case "retryable_categories":
			return r.Texts(&retry.Categories, 64, base.CheckCategoryText)
		case "max_elapsed_ms":
			return r.Integer(&retry.MaxElapsedMS, 1, 10*base.Year)
		case "by_category":
			return r.byCategory(&retry.ByCategory)
		default:
			return r.unknown()
		}
	})
}

// byCategory reads the rules of single categories. A class that is never retried cannot have one, because it would have no effect.
func (r *policyReader) byCategory(into *[]CategoryRetry) error {
	err := r.Object(func(name string) error {
		switch why := base.CheckCategoryText(name); {
		case why != "":
			return r.Refuse("the category %s", why)
		case name == classPermanent || name == classCancelled:
			return r.Refuse("is never retried")
		case len(*into) == maxCategoryRetries:
			return r.Refuse("is one category too many: at most %d are allowed", maxCategoryRetries)
		}
		rule := CategoryRetry{Name: name}
		err := r.Object(func(key string) error {
			switch key {
			case "max_retries":
				rule.MaxRetries = new(int)
				return r.Count(rule.MaxRetries, 0, 10_000)
			case "backoff":
				backoff := storedRetry()
				backoff.LeftOut = RetryMaxLeftOut
				if err := r.backoff(backoff); err != nil {
					return err
				}
				rule.Backoff = backoff.Filled()
				return nil
			default:
				return r.unknown()
			}
		})
		if err != nil {
			return err
		}
		if rule.MaxRetries == nil && rule.Backoff == nil {
			return r.Refuse("states neither max_retries nor backoff")
		}
		*into = append(*into, rule)
		return nil
	})
	slices.SortFunc(*into, func(a, b CategoryRetry) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

// backoff reads the members in any order and then checks them against the strategy.
func (r *policyReader) backoff(retry *RetryPolicy) error {
	var given []string
	err := r.Object(func(key string) error {
		given = append(given, key)
		switch key {
		case "strategy":
			return r.Word(&retry.Strategy, BackoffExponential, BackoffFixed)
		case "initial_ms":
			return r.Integer(&retry.InitialMS, 0, 7*base.Day)
		case "max_ms":
			return r.Integer(&retry.MaxMS, 0, 30*base.Day)
		case "multiplier":
			return r.Number(&retry.Multiplier, 1, 100)
		case "delay_ms":
			return r.Integer(&retry.DelayMS, 0, 30*base.Day)
		case "jitter":
			return r.Number(&retry.Jitter, 0, 1)
		default:
			return r.unknown()
		}
	})
	if err != nil {
		return err
	}
	if retry.Strategy == BackoffFixed {
		return r.fixedBackoff(retry, given)
	}
	return r.exponentialBackoff(retry, given)
}

func (r *policyReader) fixedBackoff(retry *RetryPolicy, given []string) error {
	if !slices.Contains(given, "delay_ms") {
		return r.RefuseMember("delay_ms", "is required with strategy fixed")
	}
	for _, name := range []string{"initial_ms", "max_ms", "multiplier"} {
		if slices.Contains(given, name) {
			return r.RefuseMember(name, "has no meaning with strategy fixed")
		}
	}
	retry.InitialMS, retry.MaxMS, retry.Multiplier = 0, 0, 0
	retry.LeftOut &^= RetryMaxLeftOut
	return nil
}

// exponentialBackoff raises the default maximum to an initial delay above it; a maximum that was given must not be below the initial delay.
func (r *policyReader) exponentialBackoff(retry *RetryPolicy, given []string) error {
	switch {
	case slices.Contains(given, "delay_ms"):
		return r.RefuseMember("delay_ms", "has no meaning with strategy exponential")
	case !slices.Contains(given, "max_ms"):
		retry.MaxMS = max(retry.MaxMS, retry.InitialMS)
		return nil
	case retry.MaxMS < retry.InitialMS:
		return r.RefuseMember("max_ms", "must not be below initial_ms")
	}
	retry.LeftOut &^= RetryMaxLeftOut
	return nil
}

// retry writes the object even if it would be empty: its presence alone says that the submission states the retries. Members that were left out stay
// so in the stored form, and have their stored value in the canonical one.
func (w *policyWriter) retry(name string, r *RetryPolicy) {
	if r == nil {
		return
	}
	w.Open(name)
	w.object("backoff", func() { w.backoff(r) })
	if len(r.ByCategory) > 0 {
		w.Open("by_category")
		for _, rule := range r.ByCategory {
			w.categoryRetry(rule)
		}
		w.Shut()
	}
	w.optional("max_elapsed_ms", r.MaxElapsedMS)
	if w.full || r.LeftOut&RetryCountLeftOut == 0 {
		w.Num("max_retries", int64(r.MaxRetries))
	}
	w.list("retryable_categories", r.Categories)
	w.Shut()
}

func (w *policyWriter) categoryRetry(rule CategoryRetry) {
	w.Open(rule.Name)
	if rule.Backoff != nil {
		w.Open("backoff")
		w.backoff(rule.Backoff)
		w.Shut()
	}
	if rule.MaxRetries != nil {
		w.Num("max_retries", int64(*rule.MaxRetries))
	}
	w.Shut()
}

func (w *policyWriter) backoff(r *RetryPolicy) {
	d := storedRetry()
	if r.Strategy == BackoffFixed {
		w.Num("delay_ms", r.DelayMS)
	} else {
		w.integer("initial_ms", r.InitialMS, d.InitialMS)
	}
	w.number("jitter", r.Jitter, d.Jitter)
	if r.Strategy == BackoffExponential {
		if w.full || r.LeftOut&RetryMaxLeftOut == 0 {
			w.Num("max_ms", r.MaxMS)
		}
		w.number("multiplier", r.Multiplier, d.Multiplier)
	}
	w.word("strategy", r.Strategy, d.Strategy)
}

// The JSON of a retry policy is that of a policy with nothing else: lanes and workers have default policies, whose only member it is.

// MarshalJSON writes a default policy.
func (r *RetryPolicy) MarshalJSON() ([]byte, error) {
	w := policyWriter{JSONObject: base.NewObject(128)}
	w.retry("retry_policy", r)
	return w.Done(), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *RetryPolicy) UnmarshalJSON(text []byte) error {
	read, err := ParseDefaultPolicy(text)
	if err == nil && read != nil {
		*r = *read
	}
	return err
}

// ParseDefaultPolicy reads a caller's default policy, that of a lane or of a worker; nil if it is empty. It can state the retry policy only:
// invalid_policy with the path of any other member.
func ParseDefaultPolicy(text []byte) (*RetryPolicy, error) {
	p, err := ParsePolicy(text)
	if err != nil || p == defaultPolicy {
		return nil, err
	}
	retry := p.Retry
	rest := p.withRetry(nil)
	if !bytes.Equal(rest.Canonical(), defaultPolicy.Canonical()) {
		return nil, base.Errorf(base.CodeInvalidPolicy, "a default policy has a retry_policy and nothing else").WithField("policy")
	}
	return retry, nil
}

// retryRule is what decides about one failure: the retries made by the same rule, and its bounds.
type retryRule struct {
	name string // of the category with an entry of its own; "": all others
	made int
	most int
	wait *RetryPolicy // its backoff
}

// ruleFor returns the rule for a failure: that of its category, else that of its class, else the general one.
func (x *Execution) ruleFor(retry *RetryPolicy, class, category string) retryRule {
	rule := retryRule{made: x.RetryCount, most: retry.MaxRetries, wait: retry}
	for _, name := range []string{category, class} {
		i, found := slices.BinarySearchFunc(retry.ByCategory, name, func(c CategoryRetry, name string) int { return cmp.Compare(c.Name, name) })
		if !found {
			continue
		}
		own := retry.ByCategory[i]
		rule.name, rule.made = name, x.Retries.counted(name)
		if own.MaxRetries != nil {
			rule.most = *own.MaxRetries
		}
		if own.Backoff != nil {
			rule.wait = own.Backoff
		}
		return rule
	}
	rule.made -= x.Retries.countedApart()
	return rule
}

// MostRetries returns how many retries a run can have, those of all categories together.
func (r *RetryPolicy) MostRetries() int {
	most := r.MaxRetries
	for _, rule := range r.ByCategory {
		if rule.MaxRetries != nil {
			most += *rule.MaxRetries
		} else {
			most += r.MaxRetries
		}
	}
	return most
}

// Retries is what an execution remembers about its retries besides their number. It is replaced, never changed in place.
type Retries struct {
	Worker *RetryPolicy   `json:"worker,omitempty"` // the default of the worker that failed last, in place of that of the lane or the general one
	Counts map[string]int `json:"counts,omitempty"` // retries by category that has an entry in ByCategory; they are part of RetryCount
}

func (r *Retries) counted(name string) int {
	if r == nil {
		return 0
	}
	return r.Counts[name]
}

// countedApart returns the retries of all categories with an entry.
func (r *Retries) countedApart() (n int) {
	if r != nil {
		for _, made := range r.Counts {
			n += made
		}
	}
	return n
}

// Retry returns the retry policy that applies to x at present and where it comes from: submission, worker, lane or default. It is nil, from none,
// for executions from before there were defaults.
func (x *Execution) Retry() (policy *RetryPolicy, from string) {
	switch {
	case x.RetryOrigin == RetryGiven && x.Policy.Retry == nil:
		return nil, "none"
	case x.RetryOrigin == RetryGiven:
		return x.Policy.Retry, "submission"
	case x.Retries != nil && x.Retries.Worker != nil:
		return x.Retries.Worker, "worker"
	case x.RetryOrigin == RetryOfLane:
		return x.Policy.Retry, "lane"
	default:
		return x.Policy.Retry, "default"
	}
}

// EffectivePolicy returns the policy of x with the retry policy that applies at present.
func (x *Execution) EffectivePolicy() *Policy {
	if retry, from := x.Retry(); from == "worker" {
		return x.Policy.withRetry(retry)
	}
	return x.Policy
}
