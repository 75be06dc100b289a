package flowfabric

import (
	"context"
	"iter"
	"time"
)

// Quotas limit how often work starts and how much of it runs at a time. They are shared by all namespaces; an execution is attached to
// them by its policy. Work that finds no room waits as blocked, and starts by itself when there is room.
type Quotas interface {
	// List walks the quotas by id.
	List(ctx context.Context) iter.Seq2[*Quota, error]
	// Page gives one page of the quotas. Codes: invalid_cursor.
	Page(ctx context.Context, o ...PageOptions) (Page[*Quota], error)
	// Get shows a quota and its use. Codes: quota_not_found.
	Get(ctx context.Context, id string) (*Quota, error)
	// Put states all settings of a quota, creating it if need be. They act at once; a limit that is lowered takes nothing away from
	// who runs already. Codes: invalid_argument, precondition_failed, quota_not_found with a Revision of one that is not there.
	Put(ctx context.Context, id string, s QuotaSettings, o ...AdminAction) (*Quota, error)
	// Delete removes a quota. Codes: quota_not_found, precondition_failed, quota_in_use while work that has not ended is attached to it
	// or a namespace gives it to its submits.
	Delete(ctx context.Context, id string, o ...DeleteQuotaOptions) error

	sealed()
}

// QuotaSettings are all settings of a quota. The zero value limits nothing.
type QuotaSettings struct {
	RateLimit        int           // starts in a window, at most 1 000 000; 0: no limit. A retry is a start, going on after a wait is none
	Window           time.Duration // how long a start counts, a second to a day; 0: a minute
	ConcurrencyLimit int           // executions at a time, at most 1 000 000; 0: no limit
	PerKey           bool          // each key that executions give has limits of its own
}

// DeleteQuotaOptions say how a quota is removed.
type DeleteQuotaOptions struct {
	AdminAction
	Force bool // also while it is in use: it limits nobody any more, and what it kept waiting goes on
}

// Quota is a quota, its settings, and its use as far as the client's namespaces are concerned.
type Quota struct {
	ID        string
	Settings  QuotaSettings
	Revision  int64 // counts the changes of the settings
	CreatedAt time.Time
	UpdatedAt time.Time
	Keys      []QuotaKey // those in use, by key: up to 1000, in lists 100
	MoreKeys  bool       // there are more
}

// QuotaKey is the use of one key of a quota. A quota that does not count by key has one, without a name.
type QuotaKey struct {
	Key     string
	Slots   int  // held; for a client that does not see all namespaces: by its own executions
	Holders []ID // the first 20 of those who hold them
	// Admissions is how many starts count now, NextFreeAt when the rate has room again, zero while it has. They are over all
	// namespaces, and only told to a client that sees all of them.
	Admissions int
	NextFreeAt time.Time
	Blocked    int  // executions that wait for room
	AtLeast    bool // a count stopped at 10 000
}

// QuotaUse attaches a quota to an execution.
type QuotaUse struct {
	Quota string
	Key   string // whose share it is; required if the quota counts by key, else not allowed
}
