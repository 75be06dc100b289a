package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of quotas (U99).

// MarshalJSON writes the quota as the HTTP API shows it.
func (q Quota) MarshalJSON() ([]byte, error) {
	w := wire.Quota{
		QuotaID: q.ID, QuotaSettings: q.Settings.wire(), Revision: q.Revision, CreatedAt: wireTime(q.CreatedAt), UpdatedAt: wireTime(q.UpdatedAt),
		Keys: some(q.Keys, QuotaKey.wire), MoreKeys: q.MoreKeys,
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (q *Quota) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Quota](text)
	*q = *quotaFrom(w)
	return err
}

func (s QuotaSettings) wire() wire.QuotaSettings {
	return wire.QuotaSettings{RateLimit: s.RateLimit, WindowMS: millis(s.Window), ConcurrencyLimit: s.ConcurrencyLimit, PerKey: s.PerKey}
}

func (k QuotaKey) wire() wire.QuotaKey {
	return wire.QuotaKey{
		Key: k.Key, Slots: k.Slots, Holders: texts(k.Holders), Admissions: k.Admissions, NextFreeAt: wireTime(k.NextFreeAt), Blocked: k.Blocked, AtLeast: k.AtLeast,
	}
}

func quotaFrom(w *wire.Quota) *Quota {
	s := w.QuotaSettings
	return &Quota{
		ID: w.QuotaID, Revision: w.Revision, CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time, MoreKeys: w.MoreKeys,
		Settings: QuotaSettings{RateLimit: s.RateLimit, Window: duration(s.WindowMS), ConcurrencyLimit: s.ConcurrencyLimit, PerKey: s.PerKey},
		Keys:     some(w.Keys, quotaKeyFrom),
	}
}

func quotaKeyFrom(w wire.QuotaKey) QuotaKey {
	k := QuotaKey{Key: w.Key, Slots: w.Slots, Admissions: w.Admissions, NextFreeAt: w.NextFreeAt.Time, Blocked: w.Blocked, AtLeast: w.AtLeast}
	for _, id := range w.Holders {
		k.Holders = append(k.Holders, ID(id))
	}
	return k
}

// wireUses are uses of quotas as the HTTP API has them; usesFrom reads those.
func wireUses(uses []QuotaUse) []wire.QuotaUse {
	return some(uses, func(u QuotaUse) wire.QuotaUse { return wire.QuotaUse(u) })
}

func usesFrom(uses []wire.QuotaUse) []QuotaUse {
	return some(uses, func(u wire.QuotaUse) QuotaUse { return QuotaUse(u) })
}
