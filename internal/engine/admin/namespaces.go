package admin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// NamespaceRef names the record of a namespace.
func NamespaceRef(name string) store.DocRef { return store.DocRef{Kind: docNamespace, Key: name} }

// DecodeNamespace reads the record of a namespace; nil when there is none.
func DecodeNamespace(doc *store.Doc) (*core.Namespace, error) {
	if doc == nil {
		return nil, nil
	}
	var n core.Namespace
	if err := json.Unmarshal(doc.Body, &n); err != nil {
		return nil, txn.Corrupt("namespace", err)
	}
	return &n, nil
}

// NoSuchNamespace returns the refusal of a namespace that is not there, or that the caller does not see.
func NoSuchNamespace(name string) error {
	return base.Errorf(base.CodeNamespaceNotFound, "no namespace %q", name)
}

// PutNamespace states all settings of a namespace, making it known if it is new (U101).
func (e *Admin) PutNamespace(ctx context.Context, c txn.Caller, name string, s core.NamespaceSettings, how AdminAction) (core.Namespace, error) {
	if err := base.CheckNamespace(name); err != nil {
		return core.Namespace{}, err
	}
	if err := s.Check(); err != nil {
		return core.Namespace{}, err
	}
	if !c.Sees(name) {
		return core.Namespace{}, NoSuchNamespace(name)
	}
	var answer core.Namespace
	err := e.Administer(ctx, &AdminCommand{
		Op: "put_namespace", Caller: c, How: how, Ref: NamespaceRef(name), Answer: &answer,
		Where: func(*store.Doc) ([]string, error) { return []string{name}, nil },
		Act: func(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
			existing, err := DecodeNamespace(doc)
			if err != nil {
				return AdminChange{}, err
			}
			if err := checkNamespaceRevision(how.Revision, existing, name); err != nil {
				return AdminChange{}, err
			}
			if err := e.checkDefaults(u, s.DefaultQuotas); err != nil {
				return AdminChange{}, err
			}
			var changed bool
			if answer, changed = core.PutNamespace(u.Now, existing, name, s); !changed {
				return AdminChange{}, nil
			}
			u.After = append(u.After, e.Spaces.forget)
			return namespaceChange(existing, &answer), nil
		},
	}, name, s)
	return txn.Answered(&answer, err)
}

// checkNamespaceRevision: a revision is expected of a namespace that is there.
func checkNamespaceRevision(expected *int64, n *core.Namespace, name string) error {
	switch {
	case expected == nil:
		return nil
	case n == nil:
		return NoSuchNamespace(name)
	default:
		return base.CheckRevision(expected, n.Revision)
	}
}

// namespaceChange is what a change of a namespace writes. One of from and to may be nil.
func namespaceChange(from, to *core.Namespace) AdminChange {
	change := AdminChange{Made: from == nil, Entity: "namespace"}
	if from != nil {
		change.Before, change.Chain, change.ID = from, from.Name, from.Name
	}
	if to != nil {
		change.After, change.Chain, change.ID = to, to.Name, to.Name
		change.Body, _ = json.Marshal(to)
	}
	return change
}

// DeleteNamespace forgets the settings of a namespace in which there is no execution: namespace_not_empty. Its audit log stays.
func (e *Admin) DeleteNamespace(ctx context.Context, c txn.Caller, name string, how AdminAction) error {
	if !c.Sees(name) {
		return NoSuchNamespace(name)
	}
	request := txn.RequestRef(c, opDeleteNamespace, name, how.RequestKey)
	if err := e.Prepare(ctx, request, func() error { return e.checkUnused(ctx, c, name) }); err != nil {
		return err
	}
	return e.Administer(ctx, &AdminCommand{
		Op: opDeleteNamespace, Caller: c, How: how, Ref: NamespaceRef(name),
		Where: func(*store.Doc) ([]string, error) { return []string{name}, nil },
		Act: func(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
			existing, err := DecodeNamespace(doc)
			switch {
			case err != nil:
				return AdminChange{}, err
			case existing == nil:
				return AdminChange{}, NoSuchNamespace(name)
			}
			if err := base.CheckRevision(how.Revision, existing.Revision); err != nil {
				return AdminChange{}, err
			}
			u.After = append(u.After, e.Spaces.forget)
			return namespaceChange(existing, nil), nil
		},
	}, name, nil)
}

const opDeleteNamespace = "delete_namespace"

// checkUnused refuses to forget a namespace that has executions.
func (e *Admin) checkUnused(ctx context.Context, c txn.Caller, name string) error {
	if _, err := e.Namespace(ctx, c, name); err != nil {
		return err
	}
	if err := e.Follower.ReachAll(ctx); err != nil { // what is there is counted, not guessed
		return err
	}
	n, err := e.Store.Count(ctx, store.Query{Namespaces: []string{name}}, 1)
	if err != nil {
		return txn.PublicFault(err)
	}
	if n > 0 {
		return base.Errorf(base.CodeNamespaceNotEmpty, "there are executions in namespace %q", name).
			WithHint("delete them, or wait until retention has removed them")
	}
	return nil
}

// Namespace shows a namespace.
func (e *Admin) Namespace(ctx context.Context, c txn.Caller, name string) (core.Namespace, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{NamespaceRef(name)}})
	if err != nil {
		return core.Namespace{}, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[NamespaceRef(name)]
	if !ok || !c.Sees(name) {
		return core.Namespace{}, NoSuchNamespace(name)
	}
	n, err := DecodeNamespace(&doc)
	if err != nil {
		return core.Namespace{}, err
	}
	return *n, nil
}

// Namespaces lists the namespaces that were set up, by name.
func (e *Admin) Namespaces(ctx context.Context, c txn.Caller, cursor string, limit *int) ([]core.Namespace, string, error) {
	return txn.ListDocs(ctx, e.Engine, docNamespace, "namespaces", cursor, limit, func(doc *store.Doc) (core.Namespace, bool, error) {
		if !c.Sees(doc.Key) {
			return core.Namespace{}, false, nil
		}
		n, err := DecodeNamespace(doc)
		if err != nil {
			return core.Namespace{}, false, err
		}
		return *n, true, nil
	})
}

// namespaceAge is how long the settings of namespaces are used without a look at the store.
const namespaceAge = 4 * time.Second

// namespaceCache remembers the settings of all namespaces, for submits. A submit looks into memory; once in a while one of them
// looks at the store.
type namespaceCache struct {
	store store.Store

	mu       sync.Mutex
	settings map[string]core.NamespaceSettings
	readAt   time.Time
	stale    bool // nothing was read yet, or this process has changed something since
	reading  bool
}

func newNamespaceCache(st store.Store) *namespaceCache {
	return &namespaceCache{store: st, stale: true}
}

func (c *namespaceCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

// last returns the settings of a namespace according to the last read.
func (c *namespaceCache) last(name string) core.NamespaceSettings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings[name]
}

// knows reports whether the namespace was set up, according to the last read.
func (c *namespaceCache) knows(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.settings[name]
	return known
}

// Of returns the settings of a namespace. After a change by this process all callers wait for a read of the store; otherwise one caller at a time
// reads now and then, and a failure leaves what is cached.
func (c *namespaceCache) Of(ctx context.Context, name string, host time.Time) (core.NamespaceSettings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stale {
		settings, err := c.Read(ctx)
		if err != nil {
			return core.NamespaceSettings{}, err
		}
		c.settings, c.readAt, c.stale = settings, host, false
	}
	if host.Sub(c.readAt) >= namespaceAge && !c.reading {
		c.readAt = host
		if settings, err := c.readBeside(ctx); err == nil {
			c.settings = settings
		}
	}
	return c.settings[name], nil
}

// readBeside reads while other callers continue with what is cached. The lock is held before and after.
func (c *namespaceCache) readBeside(ctx context.Context) (map[string]core.NamespaceSettings, error) {
	c.reading = true
	defer func() { c.reading = false }()
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.Read(ctx)
}

func (c *namespaceCache) Read(ctx context.Context) (map[string]core.NamespaceSettings, error) {
	loaded, err := c.store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docNamespace}}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	settings := make(map[string]core.NamespaceSettings, len(loaded.Scanned[0]))
	for i := range loaded.Scanned[0] {
		n, err := DecodeNamespace(&loaded.Scanned[0][i])
		if err != nil {
			return nil, err
		}
		settings[n.Name] = n.NamespaceSettings
	}
	return settings, nil
}
