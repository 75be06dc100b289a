package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// APIKeySettings are the permissions of a key.
type APIKeySettings struct {
	// Name is the name of the principal; several keys can have the same one.
	Name       string   `json:"name" required:"true" maxLength:"256" doc:"Name of the principal."`
	Roles      []string `json:"roles" required:"true" minItems:"1" maxItems:"5" enum:"read,submit,work,operate,admin" doc:"Its roles."`
	Namespaces []string `json:"namespaces" required:"true" minItems:"1" doc:"Namespaces it is valid for; * means all."`
	// Lanes are the lanes it can work on; nil: all.
	Lanes                []string  `json:"lanes,omitempty" doc:"Lanes it may work on; all if absent."`
	ExpiresAt            time.Time `json:"expires_at,omitzero" doc:"When it expires; never if absent."`
	MaxRequestsPerSecond int       `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests per second over all servers; 0: no limit."`
	MaxInFlight          int       `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Concurrent requests; 0: no limit."`
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
	// Secret is the complete key; "" if it was shown before.
	Secret string `json:"secret" doc:"The complete key; shown only this once."`
}

// APIKeyChange changes settings of a key; nil fields are not changed.
type APIKeyChange struct {
	Force                bool       `json:"force,omitempty" doc:"Even if no admin key for all namespaces is left."`
	Name                 *string    `json:"name,omitempty" maxLength:"256" doc:"Name of the principal."`
	Roles                *[]string  `json:"roles,omitempty" enum:"read,submit,work,operate,admin" doc:"Its roles."`
	Namespaces           *[]string  `json:"namespaces,omitempty" doc:"Namespaces it is valid for; * means all."`
	Lanes                *[]string  `json:"lanes,omitempty" doc:"Lanes it may work on; empty: all."`
	ExpiresAt            *time.Time `json:"expires_at,omitempty" doc:"When it expires."`
	MaxRequestsPerSecond *int       `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests per second over all servers; 0: no limit."`
	MaxInFlight          *int       `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Concurrent requests; 0: no limit."`
}

// MarshalJSON writes the settings as the HTTP API accepts them.
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

// MarshalJSON writes the change as the HTTP API accepts it.
func (c APIKeyChange) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads a change as strictly as the HTTP API does.
func (c *APIKeyChange) UnmarshalJSON(text []byte) error { return readRequest(text, c) }
