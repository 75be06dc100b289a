package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// grantOne is a grant of this execution for worker w, instance w-2.
func (s *story) grantOne(t Targeted) error {
	return s.do(func(fx *Effects) (err error) {
		if err := s.x.CheckGrant(t); err != nil {
			return err
		}
		s.grantKey, err = s.x.IssueGrant(fx, s.keys, GrantCommand{WorkerID: "w", InstanceID: "w-2", TTL: 5 * base.Second, RequestKey: "r"})
		return err
	})
}

// claimGrant is claim_from_grant as the engine runs it.
func (s *story) claimGrant(key keyring.GrantKey, worker, instance string) (got Acquired, err error) {
	err = s.do(func(fx *Effects) error {
		if s.x.HoldsLeaseFrom(key, worker, instance) {
			return nil
		}
		if err := VerifyGrant(s.keys, fx.Now, key, s.x); err != nil {
			return err
		}
		got, err = s.x.ClaimGrant(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: worker, InstanceID: instance, TTL: base.Minute})
		return err
	})
	return got, err
}

// returnGrant is return_grant as the engine runs it.
func (s *story) returnGrant(key keyring.GrantKey) error {
	return s.do(func(fx *Effects) error {
		if err := VerifyGrant(s.keys, fx.Now, key, s.x); err != nil {
			return err
		}
		s.x.ReturnGrant(fx)
		return nil
	})
}

// someGrantKey is the key of the last grant; without one a key that is signed well and was never issued.
func (s *story) someGrantKey() keyring.GrantKey {
	if !s.grantKey.IsZero() {
		return s.grantKey
	}
	key, _, err := s.keys.MintGrant(keyring.GrantFields{ExecutionID: s.x.ID, WorkerID: "w", InstanceID: "w-2", ExpiresAt: s.now.Add(5 * base.Second)})
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return key
}
