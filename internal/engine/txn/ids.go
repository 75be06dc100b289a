package txn

import (
	"cmp"
	crand "crypto/rand"
	"crypto/sha256"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Mint makes a UUIDv7. Its time is the host's: no rule but S6's tie depends on the order of ids. Those of one engine increase, so that work
// submitted one after the other is also claimed in that order within a millisecond.
func (e *Engine) Mint() base.UUID {
	if e.Cfg.Mint != nil {
		return e.Cfg.Mint()
	}
	var random [10]byte
	crand.Read(random[:]) // never fails
	return e.minter.Mint(e.Cfg.Clock.Now(), random)
}

// The ids of leases and attempts end with four bytes that are made of those before and of the installation, so that a lease of another store
// is known for what it is (W6). Those that earlier releases made have no such end: it only says why a command is refused.

// mintMarked makes the id of a lease or of an attempt.
func (e *Engine) mintMarked() base.UUID {
	id := e.Mint()
	if e.Cfg.Mint == nil {
		mark := e.markOf(id)
		copy(id[markAt:], mark[:])
	}
	return id
}

const markAt = len(base.UUID{}) - 4

// marked reports whether an id was made by an engine on this store.
func (e *Engine) marked(id base.UUID) bool { return [4]byte(id[markAt:]) == e.markOf(id) }

func (e *Engine) markOf(id base.UUID) (mark [4]byte) {
	installation := e.Store.Info().Installation
	sum := sha256.Sum256(append(installation[:], id[:markAt]...))
	copy(mark[:], sum[:])
	return mark
}

// fromElsewhere is the refusal of a command whose lease is of another store in all its parts, in place of one that says that the lease or its execution is
// not known. Any other error is returned as it is.
func (e *Engine) fromElsewhere(f *core.Fence, err error) error {
	if err == nil || f == nil || f.Validate() != nil || e.Cfg.Mint != nil || e.marked(f.LeaseID) || e.marked(f.AttemptID) {
		return err
	}
	if code := base.CodeOf(err); code != base.CodeStaleLease && code != base.CodeExecutionNotFound {
		return err
	}
	return base.Errorf(base.CodeInvalidHandle, "this store has not given out the lease").WithHint("send the lease to the server that gave it")
}

// underLease is a command that carries a lease.
type underLease interface{ carried() *core.Fence }

func (o *onOne) carried() *core.Fence           { return cmp.Or(o.held, o.fence) }
func (r *renew) carried() *core.Fence           { return &r.ref.Fence }
func (s *putStep) carried() *core.Fence         { return &s.fence }
func (r *reportUsage) carried() *core.Fence     { return &r.cmd.Fence }
func (s *spawn) carried() *core.Fence           { return &s.fence }
func (w *childrenWait) carried() *core.Fence    { return &w.ask.Fence }
func (o *operatorCommand) carried() *core.Fence { return cmp.Or(o.held, o.fence) }
