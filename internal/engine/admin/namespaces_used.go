package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OtherNamespaces reports whether the installation has another namespace than these (U121): one that was set up, that an unrevoked key is for, that
// a live worker serves, or that has executions, flows or budgets, regardless of their creator. It reads what is stored now.
func (e *Admin) OtherNamespaces(ctx context.Context, own []string) (bool, error) {
	foreign := func(name string) bool { return name != keyring.Everywhere && !slices.Contains(own, name) }
	for _, look := range []func(context.Context, func(string) bool) (bool, error){
		e.namesForeign, e.worksForForeign, e.holdsForeign,
	} {
		if others, err := look(ctx, foreign); others || err != nil {
			return others, err
		}
	}
	return false, nil
}

// namesForeign looks at what was configured: namespaces, and API keys.
func (e *Admin) namesForeign(ctx context.Context, foreign func(string) bool) (bool, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docNamespace}, {Kind: docAPIKey}}})
	if err != nil {
		return true, txn.PublicFault(err)
	}
	if slices.ContainsFunc(loaded.Scanned[0], func(doc store.Doc) bool { return foreign(doc.Key) }) {
		return true, nil
	}
	for i := range loaded.Scanned[1] {
		key, err := decodeKeyRecord(&loaded.Scanned[1][i])
		if err != nil || key.RevokedAt == 0 && slices.ContainsFunc(key.Namespaces, foreign) {
			return true, err
		}
	}
	return false, nil
}

// worksForForeign looks at the live workers. One that serves all namespaces says nothing of which there are.
func (e *Admin) worksForForeign(ctx context.Context, foreign func(string) bool) (bool, error) {
	now, err := e.ServerTime(ctx)
	if err != nil {
		return true, err
	}
	instances, err := e.Instances(ctx)
	return slices.ContainsFunc(instances, func(w core.Worker) bool { return w.Live(now) && slices.ContainsFunc(w.Namespaces, foreign) }), err
}

// holdsForeign checks what namespaces have: what the rooms list by namespace (ListedBy), and executions. Classes show which namespaces had executions
// once; whether there are some now is counted.
func (e *Admin) holdsForeign(ctx context.Context, foreign func(string) bool) (bool, error) {
	for _, listed := range e.listed {
		if others, err := e.listsForeign(ctx, listed.kind, listed.end, foreign); others || err != nil {
			return others, err
		}
	}
	loaded, err := e.Store.Read(ctx, store.Want{})
	if err != nil {
		return true, txn.PublicFault(err)
	}
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err != nil {
		return true, txn.PublicFault(err)
	}
	var names []string
	for _, classes := range dict.OfLane {
		for _, class := range classes {
			if foreign(class.Namespace) && !slices.Contains(names, class.Namespace) {
				names = append(names, class.Namespace)
			}
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	if err := e.Follower.ReachAll(ctx); err != nil { // what is there is counted, not guessed
		return true, err
	}
	n, err := e.Store.Count(ctx, store.Query{Namespaces: names}, 1)
	if err != nil {
		return true, txn.PublicFault(err)
	}
	return n > 0, nil
}

// listedKind is a kind of small records whose keys begin with a namespace, which end closes.
type listedKind struct {
	kind store.DocKind
	end  byte
}

// ListedBy registers a kind of small records that are listed by namespace: their keys begin with one, which end closes. A namespace with such a record
// is in use. It must be called before Start.
func (e *Admin) ListedBy(kind store.DocKind, end byte) {
	e.listed = append(e.listed, listedKind{kind, end})
}

// listsForeign looks for a record of another namespace among those whose keys begin with one, which end closes. It reads one record a
// namespace.
func (e *Admin) listsForeign(ctx context.Context, kind store.DocKind, end byte, foreign func(string) bool) (bool, error) {
	for after := ""; ; {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: kind, After: after, Limit: 1}}})
		if err != nil {
			return true, txn.PublicFault(err)
		}
		if len(loaded.Scanned[0]) == 0 {
			return false, nil
		}
		name, _, _ := strings.Cut(loaded.Scanned[0][0].Key, string(rune(end)))
		if foreign(name) {
			return true, nil
		}
		after = name + string(rune(end+1)) // behind everything of this one
	}
}
