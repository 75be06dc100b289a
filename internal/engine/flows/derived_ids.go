package flows

import (
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// If a request with a key submits work without an id, the id is derived from the request, so that the same request again finds what it created
// (U13). It is a MAC under a secret of the installation: ids are unique in the whole store, and a caller that could compute the id of another
// tenant's request could submit something under it first.

// idSecret is the secret that ids are derived with. It is stored in clear: it decrypts nothing, and a reader of the store can read the ids too.
type idSecret struct {
	Key    []byte    `json:"key"`
	MadeAt base.Time `json:"made_at"`
	// Older reports that requests with keys were recorded before there was a secret: their ids were derived without it. They are looked up until
	// their repeats are no longer recognised.
	Older bool `json:"older,omitempty"`
}

var idSecretRef = store.DocRef{Kind: docIDSecret}

// idSecrets caches the secret once it was read. The zero value is ready for use.
type idSecrets struct{ known atomic.Pointer[idSecret] }

// idSecret reads the secret, and makes it the first time.
func (e *Graphs) idSecret(ctx context.Context) (*idSecret, error) {
	if known := e.derives.known.Load(); known != nil {
		return known, nil
	}
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{idSecretRef}, Scans: []store.Scan{{Kind: txn.DocRequest, Limit: 1}}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, there := loaded.Docs[idSecretRef]
	if !there {
		making := &makeIDSecret{older: len(loaded.Scanned[0]) > 0}
		crand.Read(making.key[:]) // never fails
		if err := e.Do(ctx, making); err != nil {
			return nil, err
		}
		doc.Body = making.body
	}
	var secret idSecret
	if err := json.Unmarshal(doc.Body, &secret); err != nil || len(secret.Key) == 0 {
		return nil, txn.Corrupt("secret of ids", fmt.Errorf("it has no key: %w", err))
	}
	e.derives.known.Store(&secret)
	return &secret, nil
}

// makeIDSecret creates the secret. Of several processes one wins, and all use its secret.
type makeIDSecret struct {
	key   [32]byte
	older bool
	body  []byte // what is stored
}

func (m *makeIDSecret) Name() string { return "make_id_secret" }

func (m *makeIDSecret) Want(w *store.Want, _ bool) {
	w.Docs, w.LockDocs = append(w.Docs, idSecretRef), true
}

func (m *makeIDSecret) Decide(u *txn.Tx) error {
	if doc := u.Doc(idSecretRef); doc != nil {
		m.body = doc.Body
		return nil
	}
	m.body, _ = json.Marshal(idSecret{Key: m.key[:], MadeAt: u.Now, Older: m.older})
	u.Changes.NewDocs = append(u.Changes.NewDocs, store.Doc{DocRef: idSecretRef, Body: m.body}) // if another process was faster it is Conflict
	return nil
}

// Derivation names work that a request with a key submits.
type Derivation struct {
	Namespace  string
	RequestKey string
	Index      int  // of the item in the request
	Flow       bool // it is the flow of the request, and not an execution
	Line       bool // the request is a stream of lines
}

// DerivedID is the id of that work (U13).
func (e *Graphs) DerivedID(ctx context.Context, c txn.Caller, d Derivation) (base.UUID, error) {
	secret, err := e.idSecret(ctx)
	if err != nil {
		return base.UUID{}, err
	}
	if secret.Older {
		if id, err := e.formerID(ctx, secret, c, d); err != nil || !id.IsZero() {
			return id, err
		}
	}
	mac := hmac.New(sha256.New, secret.Key)
	what := "execution"
	switch {
	case d.Flow:
		what = "flow"
	case d.Line:
		what = "line"
	}
	for _, part := range []string{what, c.Registrant().Credential(), d.Namespace, d.RequestKey, strconv.Itoa(d.Index)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return base.MintUUID(0, [10]byte(mac.Sum(nil)[:10])), nil
}

// formerID returns the id that an older version derived, if the caller's namespace has work of that id, otherwise zero. Work of another namespace
// does not count.
func (e *Graphs) formerID(ctx context.Context, secret *idSecret, c txn.Caller, d Derivation) (base.UUID, error) {
	now, err := e.ServerTime(ctx)
	if err != nil {
		return base.UUID{}, err
	}
	if now >= secret.MadeAt.Add(txn.RequestWindow) {
		e.derives.known.CompareAndSwap(secret, &idSecret{Key: secret.Key, MadeAt: secret.MadeAt})
		return base.UUID{}, nil
	}
	c.Namespaces = []string{d.Namespace}
	id := d.former(c.Principal)
	given := base.IDOf(id).Given()
	if d.Flow {
		_, err = e.ReadFlow(ctx, c, given)
	} else {
		_, err = e.Describe(ctx, c, given)
	}
	switch base.CodeOf(err) {
	case "":
		return id, nil
	case base.CodeExecutionNotFound, base.CodeFlowNotFound:
		return base.UUID{}, nil
	default:
		return base.UUID{}, err
	}
}

// former returns the id as it was derived without a secret.
func (d *Derivation) former(principal string) base.UUID {
	index := d.Index
	if d.Flow {
		index = -1
	}
	text := principal + "\x00" + d.Namespace + "\x00" + d.RequestKey + "\x00" + strconv.Itoa(index)
	if d.Line {
		sum := sha256.Sum256([]byte(text))
		sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
		return base.UUID(sum[:16])
	}
	sum := sha256.Sum256([]byte(text + "\x00"))
	return base.MintUUID(0, [10]byte(sum[:10]))
}
