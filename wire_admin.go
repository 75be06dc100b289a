package flowfabric

import (
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of keys, namespaces, the audit log and the server itself (U101..U113).

func (s APIKeySettings) wire() wire.APIKeySettings {
	return wire.APIKeySettings{
		Name: s.Name, Roles: s.Roles, Namespaces: s.Namespaces, Lanes: s.Lanes, ExpiresAt: wireTime(s.ExpiresAt),
		MaxRequestsPerSecond: s.MaxRequestsPerSecond, MaxInFlight: s.MaxInFlight,
	}
}

func (a AdminAction) wire() wire.AdminFields { return wire.AdminFields{Reason: a.Reason} }

// MarshalJSON writes the key as the HTTP API shows it (U104).
func (k APIKey) MarshalJSON() ([]byte, error) { return wire.Marshal(k.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *APIKey) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.APIKey](text)
	*k = apiKeyFrom(*w)
	return err
}

func (k APIKey) wire() wire.APIKey {
	return wire.APIKey{
		KeyID: k.ID, APIKeySettings: k.APIKeySettings.wire(), Revision: k.Revision, CreatedAt: wireTime(k.CreatedAt), CreatedBy: k.CreatedBy,
		RotatedAt: wireTime(k.RotatedAt), LastUsedAt: wireTime(k.LastUsedAt), RevokedAt: wireTime(k.RevokedAt),
	}
}

func apiKeyFrom(w wire.APIKey) APIKey {
	s := w.APIKeySettings
	return APIKey{
		ID: w.KeyID, Revision: w.Revision, CreatedAt: w.CreatedAt.Time, CreatedBy: w.CreatedBy,
		RotatedAt: w.RotatedAt.Time, LastUsedAt: w.LastUsedAt.Time, RevokedAt: w.RevokedAt.Time,
		APIKeySettings: APIKeySettings{
			Name: s.Name, Roles: s.Roles, Namespaces: s.Namespaces, Lanes: s.Lanes, ExpiresAt: s.ExpiresAt.Time,
			MaxRequestsPerSecond: s.MaxRequestsPerSecond, MaxInFlight: s.MaxInFlight,
		},
	}
}

// MarshalJSON writes the key as the HTTP API shows it (U104), with its secret.
func (k NewAPIKey) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.NewAPIKey{APIKey: k.APIKey.wire(), Secret: k.Secret})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *NewAPIKey) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.NewAPIKey](text)
	*k = NewAPIKey{APIKey: apiKeyFrom(w.APIKey), Secret: w.Secret}
	return err
}

func (s NamespaceSettings) wire() wire.NamespaceSettings {
	return wire.NamespaceSettings{
		Description: s.Description, MaxSubmitPerSecond: s.MaxSubmitPerSecond, MaxPayloadBytes: int64(s.MaxPayloadBytes), DefaultQuotas: s.DefaultQuotas,
		MaxLanes: s.MaxLanes, MaxClasses: s.MaxClasses, MaxReady: s.MaxReady, MaxPriority: s.MaxPriority,
		MaxRequestsPerSecond: s.MaxRequestsPerSecond,
	}
}

// MarshalJSON writes the namespace as the HTTP API shows it (U101).
func (n Namespace) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.Namespace{Namespace: n.Name, NamespaceSettings: n.Settings.wire(), Revision: n.Revision, CreatedAt: wireTime(n.CreatedAt)})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *Namespace) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Namespace](text)
	*n = *namespaceFrom(*w)
	return err
}

func namespaceFrom(w wire.Namespace) *Namespace {
	return &Namespace{
		Name: w.Namespace, Revision: w.Revision, CreatedAt: w.CreatedAt.Time,
		Settings: NamespaceSettings{
			Description: w.Description, MaxSubmitPerSecond: w.MaxSubmitPerSecond, MaxPayloadBytes: int(w.MaxPayloadBytes), DefaultQuotas: w.DefaultQuotas,
			MaxLanes: w.MaxLanes, MaxClasses: w.MaxClasses, MaxReady: w.MaxReady, MaxPriority: w.MaxPriority,
			MaxRequestsPerSecond: w.MaxRequestsPerSecond,
		},
	}
}

// MarshalJSON writes the row as the HTTP API shows it (U110).
func (r AuditRow) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.AuditRow{
		AuditID: r.ID, At: wireTime(r.At), Namespace: r.Namespace, Principal: r.Principal, Action: r.Action, Entity: r.Entity,
		EntityID: r.EntityID, Reason: r.Reason, RequestID: r.RequestID, Address: r.Address, Before: r.Before, After: r.After,
		Outcome: r.Outcome, PrevHash: r.PrevHash, Hash: r.Hash,
	})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *AuditRow) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.AuditRow](text)
	*r = auditRowFrom(*w)
	return err
}

func auditRowFrom(w wire.AuditRow) AuditRow {
	return AuditRow{
		ID: w.AuditID, At: w.At.Time, Namespace: w.Namespace, Principal: w.Principal, Action: w.Action, Entity: w.Entity,
		EntityID: w.EntityID, Reason: w.Reason, RequestID: w.RequestID, Address: w.Address, Before: w.Before, After: w.After,
		Outcome: w.Outcome, PrevHash: w.PrevHash, Hash: w.Hash,
	}
}

// MarshalJSON writes the answer as the HTTP API shows it (U112).
func (i Info) MarshalJSON() ([]byte, error) {
	w := wire.Info{
		Version: i.Version, Commit: i.Commit, API: i.API, Store: wire.StoreInfo(i.Store), ServerTime: wireTime(i.ServerTime),
		ClockSkewMS: i.ClockSkew.Milliseconds(), Features: i.Features, Limits: i.Limits,
	}
	if w.Features == nil {
		w.Features = map[string]bool{}
	}
	if w.Limits == nil {
		w.Limits = map[string]int64{}
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *Info) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Info](text)
	*i = infoFrom(w)
	return err
}

func infoFrom(w *wire.Info) Info {
	return Info{
		Version: w.Version, Commit: w.Commit, API: w.API, Store: StoreInfo(w.Store), ServerTime: w.ServerTime.Time,
		ClockSkew: duration(w.ClockSkewMS), Features: w.Features, Limits: w.Limits,
	}
}

// MarshalJSON writes the answer as the HTTP API shows it (U111).
func (i Identity) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.Principal{
		Principal: i.Principal, KeyID: i.KeyID, Namespaces: append([]string{}, i.Namespaces...), Roles: append([]string{}, i.Roles...), Open: i.Open,
	})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *Identity) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Principal](text)
	*i = Identity(*w)
	return err
}

// MarshalJSON writes the report as the HTTP API shows it (U113).
func (r IntegrityReport) MarshalJSON() ([]byte, error) {
	w := wire.Integrity{OK: r.OK, Checked: append([]string{}, r.Checked...)}
	for _, d := range r.Differences {
		w.Differences = append(w.Differences, wire.Difference(d))
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *IntegrityReport) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Integrity](text)
	*r = integrityFrom(w)
	return err
}

func integrityFrom(w *wire.Integrity) IntegrityReport {
	r := IntegrityReport{OK: w.OK, Checked: w.Checked}
	for _, d := range w.Differences {
		r.Differences = append(r.Differences, Difference(d))
	}
	return r
}

// MarshalJSON writes the outcome as the HTTP API shows it (U131).
func (c AuditCheck) MarshalJSON() ([]byte, error) { return wire.Marshal(wire.AuditCheck(c)) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *AuditCheck) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.AuditCheck](text)
	*c = AuditCheck(*w)
	return err
}
