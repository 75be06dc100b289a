package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// APIKeySettings are what a key may do.
type APIKeySettings struct {
	// Name is that of the principal; several keys may be the same one.
	Name       string   `json:"name" required:"true" maxLength:"256" doc:"Name of the principal."`
	Roles      []string `json:"roles" required:"true" minItems:"1" maxItems:"5" enum:"read,submit,work,operate,admin" doc:"What it may do."`
	Namespaces []string `json:"namespaces" required:"true" minItems:"1" doc:"Where it may do it; * is everywhere."`
	// Lanes are those that it may work on; nil: all.
	Lanes                []string  `json:"lanes,omitempty" doc:"Lanes that it may work on; all if absent."`
	ExpiresAt            time.Time `json:"expires_at,omitzero" doc:"When it stops working; never if absent."`
	MaxRequestsPerSecond int       `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second over all servers; 0: no limit."`
	MaxInFlight          int       `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Requests at a time; 0: no limit."`
}

// APIKey is a key without its secret.
type APIKey struct {
	ID string `json:"key_id" doc:"Id of the key."`
	APIKeySettings
	Revision   int64     `json:"revision" doc:"Counts the changes of the key."`
	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When it was created."`
	CreatedBy  string    `json:"created_by,omitempty" doc:"Who created it."`
	RotatedAt  time.Time `json:"rotated_at,omitzero" doc:"When it last got a new secret."`
	LastUsedAt time.Time `json:"last_used_at,omitzero" doc:"When it was last used, to the minute."`
	RevokedAt  time.Time `json:"revoked_at,omitzero" doc:"When it was revoked."`
}

// NewAPIKey is a key with its secret.
type NewAPIKey struct {
	APIKey
	// Secret is the whole key as it is sent; "" when it was shown before.
	Secret string `json:"secret" doc:"The whole key as it is sent; shown this once."`
}

// APIKeyChange changes settings of a key; what is nil stays.
type APIKeyChange struct {
	Force                bool       `json:"force,omitempty" doc:"Also if no key is left that administers all namespaces."`
	Name                 *string    `json:"name,omitempty" maxLength:"256" doc:"Name of the principal."`
	Roles                *[]string  `json:"roles,omitempty" enum:"read,submit,work,operate,admin" doc:"What it may do."`
	Namespaces           *[]string  `json:"namespaces,omitempty" doc:"Where it may do it; * is everywhere."`
	Lanes                *[]string  `json:"lanes,omitempty" doc:"Lanes that it may work on; empty: all."`
	ExpiresAt            *time.Time `json:"expires_at,omitempty" doc:"When it stops working."`
	MaxRequestsPerSecond *int       `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second over all servers; 0: no limit."`
	MaxInFlight          *int       `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Requests at a time; 0: no limit."`
}

// MarshalJSON writes the settings as the HTTP API takes them.
func (s APIKeySettings) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads settings as strictly as the HTTP API does.
func (s *APIKeySettings) UnmarshalJSON(text []byte) error { return readRequest(text, s) }

// MarshalJSON writes the key as the HTTP API shows it.
func (k APIKey) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&k) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *APIKey) UnmarshalJSON(text []byte) error { return readAnswer(text, k) }

// MarshalJSON writes the key as the HTTP API shows it, with its secret.
func (k NewAPIKey) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&k) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *NewAPIKey) UnmarshalJSON(text []byte) error { return readAnswer(text, k) }

// MarshalJSON writes the change as the HTTP API takes it.
func (c APIKeyChange) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads a change as strictly as the HTTP API does.
func (c *APIKeyChange) UnmarshalJSON(text []byte) error { return readRequest(text, c) }
