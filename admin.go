package flowfabric

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"
)

// Admin is what administrators do. An engine in this process administers its whole store; a caller of a server the namespaces that
// its API key is for, and what belongs to none only with a key for all of them ("*").
type Admin interface {
	APIKeys() APIKeys
	SigningKeys() SigningKeys
	Namespaces() Namespaces

	// Audit walks the audit log: namespace by namespace in order of their names, in each the newest row first.
	//
	// Codes: invalid_cursor.
	Audit(ctx context.Context, o ...AuditFilter) iter.Seq2[AuditRow, error]
	// AuditPage gives one page of the audit log. Codes: invalid_cursor.
	AuditPage(ctx context.Context, f AuditFilter) (Page[AuditRow], error)
	// VerifyAudit recomputes the chain of a namespace ("": the client's own), or of "*", and finds the first row that was changed or
	// is missing. In a store with a master key it also finds a chain that was rewritten, shortened or removed by somebody without it.
	//
	// Codes: namespace_not_found, namespace_required, master_key_required, master_key_mismatch.
	VerifyAudit(ctx context.Context, namespace string) (AuditCheck, error)
	// RecordRefusal writes into the audit log that a valid credential was refused. Servers do so; Connect clients cannot:
	// not_implemented.
	RecordRefusal(ctx context.Context, r Refusal) error
	// OnlyNamespace reports whether there is no other namespace than this one: none that was set up, that a key is for, that a live
	// worker serves or that has executions, flows or budgets. Servers ask; Connect clients cannot: not_implemented.
	OnlyNamespace(ctx context.Context, name string) (bool, error)

	// Info tells version, store, features and limits.
	Info(ctx context.Context) (Info, error)
	// Whoami tells for whom the client acts.
	Whoami(ctx context.Context) (Identity, error)
	// Integrity recounts what is counted and filed twice, and tells what does not agree. It reads everything, in parts.
	Integrity(ctx context.Context) (IntegrityReport, error)
	// Doctor looks at the store, at the work in it and, through a server, at the server, and tells what is not as it should be. What
	// cannot be looked at is a check that failed.
	Doctor(ctx context.Context) (Checkup, error)
	// AcknowledgeRollbacks states that an administrator knows of acknowledged commits that the database came back without, after a
	// failover or a restore: Doctor fails no more on their account. It returns those that were open; none is no error.
	AcknowledgeRollbacks(ctx context.Context, o ...AdminAction) ([]Rollback, error)
	// Settings tells the settings in force and where each came from.
	Settings(ctx context.Context) ([]Setting, error)
	// Backup writes a consistent copy of the whole store while it is in use: of SQLite the file. Postgres has its own means:
	// not_implemented, with the command as hint.
	Backup(ctx context.Context, w io.Writer, o ...BackupOptions) error

	sealed()
}

// APIKeys are the credentials of a server's callers.
type APIKeys interface {
	// List walks the keys by id.
	List(ctx context.Context) iter.Seq2[*APIKey, error]
	// Page gives one page of the keys. Codes: invalid_cursor.
	Page(ctx context.Context, o ...PageOptions) (Page[*APIKey], error)
	// Get shows a key. Codes: api_key_not_found.
	Get(ctx context.Context, id string) (*APIKey, error)
	// Create makes a key and shows its secret, this once. A call with the request key of an earlier one answers the key that that one
	// made, without the secret.
	//
	// Codes: invalid_argument, namespace_forbidden, invalid_credentials and id_conflict for a given Secret.
	Create(ctx context.Context, s APIKeySettings, o ...CreateKeyOptions) (*NewAPIKey, error)
	// Change changes the settings that are given. It works at once in this process, within five seconds in others.
	//
	// Codes: api_key_not_found, key_retired for one that was revoked, invalid_argument, namespace_forbidden, precondition_failed,
	// last_admin_key when no key would be left that administers all namespaces.
	Change(ctx context.Context, id string, c APIKeyChange, o ...AdminAction) (*APIKey, error)
	// Revoke ends a key for good. A second time is a success.
	//
	// Codes: api_key_not_found, precondition_failed, last_admin_key when no other key administers all namespaces.
	Revoke(ctx context.Context, id string, o ...RevokeAPIKeyOptions) error
	// Rotate gives a key a new secret and shows it, this once. The old one works on for a while. A call with the request key of an
	// earlier one answers without the secret.
	//
	// Codes: api_key_not_found, key_retired for one that was revoked, invalid_argument, precondition_failed.
	Rotate(ctx context.Context, id string, o ...RotateOptions) (*NewAPIKey, error)
	// Authenticate finds the key of a secret. Servers ask for each request; the answer is at most five seconds old, and sees what
	// this process changed at once. Connect clients cannot: not_implemented.
	//
	// Codes: missing_credentials, invalid_credentials, api_key_expired, api_key_revoked.
	Authenticate(ctx context.Context, secret string) (*APIKey, error)

	sealed()
}

// APIKeySettings are what a key may do.
type APIKeySettings struct {
	Name                 string   // of the principal; several keys may be the same one
	Roles                []string // "read", "submit", "work", "operate", "admin"
	Namespaces           []string // where; "*": everywhere
	Lanes                []string // that it may work on; nil: all
	ExpiresAt            time.Time
	MaxRequestsPerSecond int // over all servers; 0: no limit
	MaxInFlight          int // 0: no limit
}

// APIKey is a key without its secret.
type APIKey struct {
	ID string
	APIKeySettings
	Revision   int64 // counts the changes
	CreatedAt  time.Time
	CreatedBy  string
	RotatedAt  time.Time
	LastUsedAt time.Time // to the minute
	RevokedAt  time.Time
}

// NewAPIKey is a key with its secret.
type NewAPIKey struct {
	APIKey
	Secret string // the whole key as it is sent; "" when it was shown before
}

// APIKeyChange changes settings of a key; what is nil stays.
type APIKeyChange struct {
	Name                 *string
	Roles                *[]string
	Namespaces           *[]string
	Lanes                *[]string
	ExpiresAt            *time.Time
	MaxRequestsPerSecond *int
	MaxInFlight          *int
	Force                bool // also if no key is left that administers all namespaces
}

// AdminAction is what an administrator's change may carry.
type AdminAction struct {
	Reason     string // at most 1024 bytes; stands in the audit log
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Revision   *int64 // refuse with precondition_failed when it is another; nil: whatever it is
}

// CreateKeyOptions say how a key is made.
type CreateKeyOptions struct {
	AdminAction        // a new key has no revision
	Secret      string // a whole key, "ffk_…", to install instead of a new one; installing it twice is a success
}

// RevokeAPIKeyOptions say how a key is revoked.
type RevokeAPIKeyOptions struct {
	AdminAction
	Force bool // also the last one that administers all namespaces
}

// RotateOptions say how a key is rotated.
type RotateOptions struct {
	AdminAction
	Overlap *time.Duration // how long the old secret works on, up to 30 days; nil: what the server is set to (KeyGrace), a day by default
}

// Namespaces are the tenants of a store. A namespace exists by being used; here those are set up that need other settings than
// the default.
type Namespaces interface {
	// List walks the namespaces by name.
	List(ctx context.Context) iter.Seq2[*Namespace, error]
	// Page gives one page of the namespaces. Codes: invalid_cursor.
	Page(ctx context.Context, o ...PageOptions) (Page[*Namespace], error)
	// Get shows a namespace. Codes: namespace_not_found.
	Get(ctx context.Context, name string) (*Namespace, error)
	// Put states all settings of a namespace, setting it up if need be. Codes: invalid_argument, precondition_failed,
	// namespace_not_found with a Revision of one that is not set up.
	Put(ctx context.Context, name string, s NamespaceSettings, o ...AdminAction) (*Namespace, error)
	// Delete forgets a namespace without executions. Its audit log stays.
	//
	// Codes: namespace_not_found, namespace_not_empty, precondition_failed.
	Delete(ctx context.Context, name string, o ...AdminAction) error

	sealed()
}

// NamespaceSettings are all settings of a namespace. The zero value is the default.
type NamespaceSettings struct {
	Description        string
	MaxSubmitPerSecond int // over all servers; 0: no limit
	// MaxRequestsPerSecond bounds the requests with keys of the namespace, over all servers: more are refused with rate_limited. Calls that keep
	// or end work which runs have four times as many for themselves. 0: 1,000 a second and processor on each server, as long as other
	// namespaces send requests there too.
	MaxRequestsPerSecond int
	MaxPayloadBytes      int // of an input, up to 64 MiB; 0: the engine's limit
	// MaxLanes and MaxClasses bound what the executions of the namespace use: lanes, and combinations of lane, kind, capabilities, fairness
	// key, quotas and budgets. What is there goes on; new ones are refused with namespace_limit_exceeded. 0: 10,000 and 100,000 as long as
	// other namespaces are in use too, else no limit.
	MaxLanes, MaxClasses int
	// MaxReady bounds the executions that wait for a worker: further submits are refused with rate_limited. Flows, children, retries and
	// resumes are not. It is counted every few seconds; several servers may go beyond it by what they take in between. 0: no limit.
	MaxReady    int
	MaxPriority int // a submit that asks for a higher priority gets this one; 0: any
	// DefaultQuotas are added to the policy of every submit that does not name them, up to 8.
	DefaultQuotas []QuotaUse
}

// Namespace is a namespace and its settings.
type Namespace struct {
	Name      string
	Settings  NamespaceSettings
	Revision  int64 // counts the changes of the settings
	CreatedAt time.Time
}

// AuditFilter selects rows of the audit log: all given parts must hold. The zero value: all rows, in pages of 100.
type AuditFilter struct {
	Namespace string // "": all that the caller sees; "*": what belongs to none
	Principal string
	Action    string
	Entity    string
	EntityID  string
	From      time.Time // at this moment or later
	To        time.Time // before this moment
	Limit     int       // of a page; 0: 100, above 1000 counts as 1000
	Cursor    string    // NextCursor of the page before, with the same filter
}

// AuditRow is one row of the audit log: a change made with the role operate or admin, or a refusal. Rows of a namespace form a
// chain: each has the hash of the one before.
type AuditRow struct {
	ID        string
	At        time.Time
	Namespace string // whose chain it is in; "*": it concerns several, or what all share
	Principal string
	Action    string // the operation: cancel, put_lane, create_api_key, ...
	Entity    string // execution, lane, quota, worker, bulk, api_key, signing_key, namespace
	EntityID  string
	Reason    string
	RequestID string
	Address   string
	Before    json.RawMessage // the changed fields as they were; never a payload
	After     json.RawMessage // the changed fields as they are
	Outcome   string          // "done", or the code of the refusal
	PrevHash  string          // of the row before, hexadecimal
	Hash      string          // SHA-256 over PrevHash and the row
}

// AuditCheck is the outcome of VerifyAudit.
type AuditCheck struct {
	Namespace  string
	OK         bool     // every row fits, and with a key the chain is the one that was written
	Keyed      bool     // the chain is sealed under a key that the master key protects; if not, who can write the database can rewrite it
	FirstKeyed int64    // number of the first row that was written under the key; 0: none was
	First      int64    // number of the oldest row that is kept
	Last       int64    // number of the newest row; 0: there never was one
	Rows       int64    // that are kept and fit
	Broken     int64    // number of the first row that does not fit, counted from the beginning of the chain; 0: it is not the fault of one row
	Problem    string   // what is wrong; "" when nothing is
	Removed    []string // namespaces whose chains were removed whole; looked for with "*" only
	Hash       string   // of the newest row: kept elsewhere it proves later that the chain was not set back
}

// Refusal is a call that a valid credential may not make.
type Refusal struct {
	Namespace string // "": that of the caller
	Action    string // that was asked for, as AuditRow calls it
	Entity    string
	EntityID  string
	Code      string // role_required, namespace_forbidden
}

// Info is what a client runs on.
type Info struct {
	Version    string // of this module
	Commit     string
	API        string // of the HTTP API: "v1"
	Store      StoreInfo
	ServerTime time.Time     // the store's clock
	ClockSkew  time.Duration // how far the host's clock is ahead of the store's
	Features   map[string]bool
	Limits     map[string]int64
}

// StoreInfo is what a store is.
type StoreInfo struct {
	Kind    string // sqlite, postgres
	Version string // of the database
	Schema  int    // of our tables

	InstallationID string // names the database; transactional submits look for it
	LogID          string // names the event log; another after a copy was restored or commits were lost

	State string // ok, store_full (nothing can be written) or corruption (parts of it cannot be read), as far as this server has met it
}

// Identity is who a client acts for.
type Identity struct {
	Principal  string
	KeyID      string   // "" without an API key
	Namespaces []string // "*": all
	Roles      []string
	Open       bool // nobody is asked for credentials
}

// IntegrityReport is the outcome of Integrity.
type IntegrityReport struct {
	OK          bool
	Checked     []string // what was recounted
	Differences []Difference
}

// Difference is something that does not agree with the records.
type Difference struct {
	What   string // what was recounted
	Key    string // of which thing
	Stored int64
	Found  int64
}
