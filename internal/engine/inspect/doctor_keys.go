package inspect

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
)

// signingKey checks whether tokens can be signed (W22).
func (x *examination) signingKey() Check {
	_, set, err := x.e.ReadKeySet(x.ctx)
	if err != nil {
		return unknown(err)
	}
	list := set.List(x.now, false)
	switch {
	case list.CurrentKid != "":
		return fine("the key %s signs, keys that verify: %d", list.CurrentKid, len(list.Keys))
	case len(set.Keys) == 0 && x.e.Cfg.NoTimers:
		return worrying("start a server, or flowfabric keys seed", "there is no signing key yet: a server makes one when it starts")
	default:
		return failing("flowfabric keys rotate KID makes a new key", "no signing key is active: nothing that needs a token can be made")
	}
}

// masterKey checks whether stored secrets are sealed, and open to this process (W24, U130).
func (x *examination) masterKey() Check {
	loaded, set, err := x.e.ReadKeySet(x.ctx)
	if err != nil {
		return unknown(err)
	}
	_, err = x.e.Signing.Open(loaded.Docs[admin.KeySetRef].Body)
	switch code := base.CodeOf(err); {
	case code == base.CodeMasterKeyRequired || code == base.CodeMasterKeyMismatch:
		return failing("give the master key under which they were sealed (FF_MASTER_KEY_FILE)", "stored secrets cannot be opened: %s", code)
	case err != nil:
		return unknown(err)
	case x.e.Signing.MasterKey().IsZero():
		return worrying("give a master key (FF_MASTER_KEY_FILE): 32 bytes, from openssl rand -hex 32",
			"there is no master key: secrets are stored in clear, who reads the database can sign tokens, and who writes it can rewrite the audit log")
	case set.Clear():
		return worrying("start a server with this master key: it seals them", "some secrets are stored in clear")
	default:
		return fine("stored secrets are sealed")
	}
}
